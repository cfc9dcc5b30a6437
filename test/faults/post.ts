// Sends one request to record a signal, and finds out how far it came.
import { connect } from 'node:net'

export type Tenant = { org: string; organisation: number; key: string; prompt: string }

/** A running replica of the service. Its URL changes with every start. */
export type Replica = {
  name: string
  url: string
  /** One connection for each request, so that the loss of a request can be distinguished from that of an idle connection. */
  exact: boolean
}

/** A request to record a signal. Its `id` is in the metadata, and is the Idempotency-Key if it has one. */
export type SignalRequest = { id: string; tenant: Tenant; keyed: boolean }

export type Attempt = {
  request: SignalRequest
  replica: string
  sentAt: number
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
export const GIVE_UP_MS = 8_000

/** Holds the second half of a body back. */
export type Pause = { onFirstHalf(): void; until: Promise<void> }

export async function post(replica: Replica, request: SignalRequest, pause?: Pause): Promise<Attempt> {
  const sentAt = performance.now()
  const reply = await (replica.exact ? postOnce(replica.url, request, pause) : postByFetch(replica.url, request))
  return { request, replica: replica.name, sentAt, ms: performance.now() - sentAt, ...reply }
}

const bodyOf = (request: SignalRequest): string =>
  JSON.stringify({ value: 'positive', metadata: { request: request.id } })

const pathOf = ({ tenant }: SignalRequest) => `/api/v1/prompts/${tenant.prompt}/signals`

const headersOf = ({ id, keyed, tenant }: SignalRequest): Record<string, string> => ({
  authorization: `Bearer ${tenant.key}`,
  'content-type': 'application/json',
  ...(keyed ? { 'idempotency-key': id } : {}),
})

const noReply = (outcome: Reply['outcome']): Reply => ({ outcome, status: 0, text: '', replayed: false })

async function postByFetch(url: string, request: SignalRequest): Promise<Reply> {
  try {
    const response = await fetch(url + pathOf(request), {
      method: 'POST',
      headers: headersOf(request),
      body: bodyOf(request),
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

function postOnce(url: string, request: SignalRequest, pause?: Pause): Promise<Reply> {
  const body = bodyOf(request)
  const headers = { ...headersOf(request), host: 'faults', connection: 'close', 'content-length': `${body.length}` }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const half = body.length >> 1
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    let sent = false
    let received = ''
    const socket = connect(Number(port), hostname, async () => {
      socket.write(`POST ${pathOf(request)} HTTP/1.1\r\n${lines.join('')}\r\n${body.slice(0, half)}`)
      sent = true
      pause?.onFirstHalf()
      await pause?.until
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
      else resolve(parseReply(received))
    })
  })
}

function parseReply(received: string): Reply {
  const [head = '', text = ''] = received.split('\r\n\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1])
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1])
  // Every answer is ASCII, so that characters are bytes.
  if (text.length !== length) return noReply('cut')
  return { outcome: 'answered', status, text, replayed: /^idempotent-replayed: *true/im.test(head) }
}
