// One request to record a signal, timed, and told apart by how far it came.
import { connect } from 'node:net'

export type Tenant = { org: string; organisation: number; key: string; prompt: string }

/** A running copy of the service; where it is changes with every start. */
export type Replica = {
  name: string
  url: string
  /** One connection for each request, so that the end of one can be told from the end of an idle connection. */
  exact: boolean
}

/** A signal that some client wants recorded; `id` is in its metadata, and is its Idempotency-Key if it has one. */
export type Wish = { id: string; tenant: Tenant; keyed: boolean }

export type Attempt = {
  wish: Wish
  replica: string
  askedAt: number
  ms: number
  /** How far an attempt without an answer came; `cut` is an answer that broke off. */
  outcome: 'answered' | 'failed' | 'refused' | 'unanswered' | 'cut'
  /** Zero without an answer. */
  status: number
  /** The body as it was sent. */
  text: string
  replayed: boolean
}

type Reply = Pick<Attempt, 'outcome' | 'status' | 'text' | 'replayed'>

/** Beyond any deadline of the service: a request that takes so long is a finding, not a reason to hang. */
const GIVE_UP_MS = 8_000

/** With a pause, the second half of the body is held back for so long. */
export async function post(replica: Replica, wish: Wish, pause?: Promise<void>): Promise<Attempt> {
  const askedAt = performance.now()
  const reply = await (replica.exact ? postOnce(replica.url, wish, pause) : postByFetch(replica.url, wish))
  return { wish, replica: replica.name, askedAt, ms: performance.now() - askedAt, ...reply }
}

const bodyOf = ({ id }: Wish) => JSON.stringify({ value: 'positive', metadata: { wish: id } })

const pathOf = ({ tenant }: Wish) => `/api/v1/prompts/${tenant.prompt}/signals`

const headersOf = ({ id, keyed, tenant }: Wish): Record<string, string> => ({
  authorization: `Bearer ${tenant.key}`,
  'content-type': 'application/json',
  ...(keyed ? { 'idempotency-key': id } : {}),
})

const noReply = (outcome: Reply['outcome']): Reply => ({ outcome, status: 0, text: '', replayed: false })

async function postByFetch(url: string, wish: Wish): Promise<Reply> {
  try {
    const response = await fetch(url + pathOf(wish), {
      method: 'POST',
      headers: headersOf(wish),
      body: bodyOf(wish),
      signal: AbortSignal.timeout(GIVE_UP_MS),
    })
    const text = await response.text()
    return {
      outcome: 'answered',
      status: response.status,
      text,
      replayed: response.headers.get('idempotent-replayed') === 'true',
    }
  } catch {
    return noReply('failed')
  }
}

function postOnce(url: string, wish: Wish, pause?: Promise<void>): Promise<Reply> {
  const body = bodyOf(wish)
  const headers = { ...headersOf(wish), host: 'faults', connection: 'close', 'content-length': `${body.length}` }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const half = body.length >> 1
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    let sent = false
    let received = ''
    const socket = connect(Number(port), hostname, async () => {
      socket.write(`POST ${pathOf(wish)} HTTP/1.1\r\n${lines.join('')}\r\n${body.slice(0, half)}`)
      sent = true
      if (pause) await pause
      socket.write(body.slice(half))
    })
    const timer = setTimeout(() => socket.destroy(), GIVE_UP_MS)
    socket.on('data', (bytes) => {
      received += bytes.toString()
    })
    // The close that follows says how far it came.
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      if (!sent) resolve(noReply('refused'))
      else if (received === '') resolve(noReply('unanswered'))
      else resolve(readReply(received))
    })
  })
}

function readReply(received: string): Reply {
  const [head = '', text = ''] = received.split('\r\n\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1])
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1])
  // Every answer is ASCII, so that characters are bytes.
  if (text.length !== length) return noReply('cut')
  return { outcome: 'answered', status, text, replayed: /^idempotent-replayed: *true/im.test(head) }
}
