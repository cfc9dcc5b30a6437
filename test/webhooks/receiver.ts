// A receiver of webhooks, which a test tells how to answer.
import { afterAll } from 'bun:test'

export type Received = {
  id: string | null
  headers: Record<string, string>
  body: string
  path: string
}

export type Receiver = {
  url: string
  received: Received[]
  answer: (path: string) => Response | Promise<Response>
}

/** Answers 204 until a test sets `answer`. */
export function useReceiver(tls?: { cert: string; key: string }): Receiver {
  const receiver: Receiver = { url: '', received: [], answer: () => new Response(null, { status: 204 }) }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    ...(tls && { tls }),
    async fetch(request) {
      const { pathname: path } = new URL(request.url)
      const headers = Object.fromEntries(request.headers as unknown as Iterable<[string, string]>)
      const body = await request.text()
      receiver.received.push({ id: request.headers.get('webhook-id'), headers, body, path })
      return receiver.answer(path)
    },
  })
  receiver.url = server.url.href.slice(0, -1)
  afterAll(() => server.stop(true))
  return receiver
}

/** An answer that never comes. */
export const hang = (): Promise<Response> => new Promise(() => {})
