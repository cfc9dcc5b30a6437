// HTTP by hand, for what no library would send.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export type RawConnection = {
  socket: Socket
  /** Everything that was received so far. */
  answer(): string
  isClosed(): boolean
  /** Resolves with everything received once it is enough, or the connection is closed. */
  until(isEnough: (answer: string) => boolean): Promise<string>
}

/** A connection that stays open until the test or the server closes it. */
export async function openConnection(
  url: string,
  options: { allowHalfOpen?: boolean; localAddress?: string } = {},
): Promise<RawConnection> {
  const { hostname, port } = new URL(url)
  const socket = connect({ port: Number(port), host: hostname, ...options })
  await once(socket, 'connect')
  // The server may reset the connection while something is still being sent.
  socket.on('error', () => {})
  socket.setEncoding('latin1')
  let answer = ''
  let isClosed = false
  const changed = new EventTarget()
  const notify = () => changed.dispatchEvent(new Event('change'))
  socket.on('data', (text) => {
    answer += text
    notify()
  })
  const close = () => {
    isClosed = true
    notify()
  }
  socket.on('end', close)
  socket.on('close', close)
  return {
    socket,
    answer: () => answer,
    isClosed: () => isClosed,
    async until(isEnough) {
      while (!isClosed && !isEnough(answer)) {
        await new Promise((resolve) => changed.addEventListener('change', resolve, { once: true }))
      }
      return answer
    },
  }
}

/**
 * Sends the text, a byte for each character, and resolves with the first whole response, or what came before the server
 * closed the connection. `halfClose`: nothing follows the text.
 */
export async function exchange(url: string, text: string, { halfClose = false } = {}): Promise<string> {
  const { socket, until } = await openConnection(url, { allowHalfOpen: true })
  if (halfClose) socket.end(text, 'latin1')
  else socket.write(text, 'latin1')
  const answer = await until(isWhole)
  socket.destroy()
  return answer.replace('HTTP/1.1 100 Continue\r\n\r\n', '')
}

/** A request as it is sent. A body's length is declared unless `headers` say more about it. */
export function formatRequest(method: string, path: string, headers: string[], body = ''): string {
  const declaresBody = headers.some((header) => /^(content-length|transfer-encoding):/i.test(header))
  const length = body === '' || declaresBody ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
  return `${method} ${path} HTTP/1.1\r\n${['Host: test', ...headers, ...length].join('\r\n')}\r\n\r\n${body}`
}

/** A signal as it is sent. */
export const formatSignal = (
  { prompt, key }: { prompt: string; key: string },
  headers: string[] = [],
  body = '{"value":"positive"}',
): string =>
  formatRequest(
    'POST',
    `/api/v1/prompts/${prompt}/signals`,
    [`Authorization: Bearer ${key}`, 'Content-Type: application/json', ...headers],
    body,
  )

/** Whether the head and as much of a body as it declares have come. */
export function isWhole(answer: string): boolean {
  if (/^HTTP\/1\.1 100 /.test(answer)) return isWhole(answer.slice(answer.indexOf('\r\n\r\n') + 4))
  const end = answer.indexOf('\r\n\r\n')
  if (end < 0) return false
  if (/^HTTP\/1\.1 (204|304) /.test(answer)) return true
  const head = answer.slice(0, end)
  if (/^transfer-encoding: *chunked/im.test(head)) return answer.endsWith('0\r\n\r\n')
  const length = /^content-length: *(\d+)/im.exec(head)?.[1]
  return length !== undefined && answer.length - end - 4 >= Number(length)
}
