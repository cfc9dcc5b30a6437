// The one load: clients that send every kind of request through the replicas, and the ledger of the answers they got.
import { createHmac, randomUUID } from 'node:crypto'
import { push, sha } from '../github/payloads.ts'

export type Tenant = { org: string; organisation: number; key: string; prompt: string }

/** A tenant with a webhook, and a prompt that is linked to a file, beside its other one. */
export type Author = Tenant & { linkedPrompt: string; secret: string }

/** A running replica of the service. Its URL changes with every start. */
export type Replica = { name: string; url: string }

export type Request = {
  kind: 'signal' | 'vote' | 'entry' | 'push' | 'other'
  /** In the metadata of a signal; the commit of an entry or a push. */
  id: string
  tenant: Tenant
  path: string
  headers?: Record<string, string>
  body?: object
  /** Sent again until it is answered: repeats have no effect. */
  isRepeatable?: boolean
  /** What it may be answered with, beside nothing and 503. */
  statuses: number[]
}

export type Attempt = {
  request: Request
  replica: string
  sentAt: number
  ms: number
  /** Zero without an answer. */
  status: number
  /** The body as it was sent. */
  text: string
  replayed: boolean
}

export type Ledger = { attempts: Attempt[]; unanswered: Request[] }

export type Repetition = {
  /** Begins nothing further, and waits for what is in flight. */
  stop(): Promise<void>
}

/** How many clients record signals through these replicas, and the pause of each between two of them. */
export type Pace = { routes: Replica[][]; clients: number; pauseMs: number }

export const REPOSITORY = 'faults/prompts'
export const PATH = 'prompt.md'
/** Every twelfth client works for the organisation that is close to its limit. */
const CLIENTS_PER_SMALL = 12
/** Every sixteenth client sends batches of so many signals. */
const [CLIENTS_PER_BATCHING, BATCH] = [16, 20] as const
const SMALL_PAUSE_MS = 200
const OTHER_PAUSE_MS = 20
const RETRY_MS = 50
/** What did not succeed in this time never will. */
const PERSIST_MS = 120_000
/** Beyond any deadline of the service: a request that takes so long is a finding, not a reason to hang. */
const GIVE_UP_MS = 8_000

let requests = 0
const nextId = () => `request-${++requests}`

export const isAcknowledged = ({ status }: { status: number }): boolean => status === 200 || status === 201
export const hasFailed = ({ status }: { status: number }): boolean => status === 0 || status === 503

export function createSignal(tenant: Tenant, isRepeatable = false): Request {
  const id = nextId()
  return {
    kind: 'signal',
    id,
    tenant,
    path: `/prompts/${tenant.prompt}/signals`,
    headers: isRepeatable ? { 'idempotency-key': id } : {},
    // One in twenty is large.
    body: { value: 'positive', metadata: { request: id, ...(requests % 20 ? {} : { text: 'x'.repeat(8_000) }) } },
    isRepeatable,
    statuses: [201, 429],
  }
}

/** Of its few subjects, the client sends one vote at a time. */
function createVote(author: Author, turn: number): Request {
  const id = nextId()
  return {
    kind: 'vote',
    id,
    tenant: author,
    path: `/prompts/${author.prompt}/signals`,
    body: { value: turn % 3 ? 'positive' : 'negative', metadata: { request: id }, subject: `subject ${turn % 5}` },
    isRepeatable: true,
    statuses: [200, 201],
  }
}

function createEntry(author: Author): Request {
  const id = sha(nextId())
  const user = { name: 'Ada', email: 'ada@example.com' }
  // Without its time, a repeat after another deployment would be a rollback.
  const created_at = new Date().toISOString()
  return {
    kind: 'entry',
    id,
    tenant: author,
    path: `/prompts/${author.prompt}/history`,
    body: { action: 'deployed', user, commit_sha: id, branch_name: 'main', created_at },
    isRepeatable: true,
    statuses: [200, 201],
  }
}

function createPush(author: Author): Request {
  const id = sha(nextId())
  // GitHub gives whole seconds.
  const at = `${new Date().toISOString().slice(0, 19)}Z`
  const body = push({ repository: REPOSITORY, after: id, at, commits: [{ id, modified: [PATH] }] })
  const signature = createHmac('sha256', author.secret).update(JSON.stringify(body)).digest('hex')
  const headers = {
    'x-github-event': 'push',
    'x-github-delivery': randomUUID(),
    'x-hub-signature-256': `sha256=${signature}`,
  }
  const path = `/webhooks/github/${author.org}`
  return { kind: 'push', id, tenant: author, path, headers, body, isRepeatable: true, statuses: [200] }
}

let lastTag = ''

/** What changes nothing, by turns. */
const others: ((author: Author) => Pick<Request, 'path' | 'statuses' | 'headers' | 'body'>)[] = [
  ...['', '?page=2', '?page=1000000', '?limit=100', '?action=deployed', '?since=2026-01-01T00:00:00Z'].map(
    (query) =>
      ({ prompt }: Author) => ({ path: `/prompts/${prompt}/history${query}`, statuses: [200] }),
  ),
  ({ prompt }) => ({
    path: `/prompts/${prompt}/history`,
    statuses: [200, 304],
    headers: { 'if-none-match': lastTag },
  }),
  ({ prompt }) => ({ path: `/prompts/${prompt}/signals`, statuses: [422], body: { value: 'maybe' } }),
  ({ prompt }) => ({
    path: `/prompts/${prompt}/history`,
    statuses: [401],
    headers: { authorization: `Bearer psk_${randomUUID().replaceAll('-', '')}abcd` },
  }),
  () => ({ path: '/prompts/pmt_none/history', statuses: [404] }),
  ...['/metrics', '/readyz', '/docs/json'].map((path) => () => ({ path, statuses: [200] })),
]

const createOther = (author: Author, turn: number): Request => ({
  kind: 'other',
  id: nextId(),
  tenant: author,
  ...(others[turn % others.length] as (typeof others)[number])(author),
})

export async function send(ledger: Ledger, replica: Replica, request: Request): Promise<Attempt> {
  const attempt = await sendOnce(replica, request)
  ledger.attempts.push(attempt)
  return attempt
}

async function sendOnce({ name, url }: Replica, request: Request): Promise<Attempt> {
  const { tenant, path, headers, body } = request
  const sentAt = performance.now()
  const reply = await fetch(url + (path.startsWith('/prompts') ? '/api/v1' : '') + path, {
    headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json', ...headers },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(GIVE_UP_MS),
  })
    .then(async (response) => {
      if (path.endsWith('/history')) lastTag = response.headers.get('etag') ?? lastTag
      const replayed = response.headers.get('idempotent-replayed') === 'true'
      return { status: response.status, text: await response.text(), replayed }
    })
    .catch(() => ({ status: 0, text: '', replayed: false }))
  return { request, replica: name, sentAt, ms: performance.now() - sentAt, ...reply }
}

/**
 * Sends signals of one tenant, and records of each the answer that a request for it alone would have got. A batch that is
 * not answered is no answer to any of its signals.
 */
async function sendBatch(ledger: Ledger, replica: Replica, signals: Request[]): Promise<Attempt[]> {
  const first = signals[0] as Request
  const items = signals.map(({ id, body, isRepeatable }) => ({
    ...body,
    ...(isRepeatable ? { idempotency_key: id } : {}),
  }))
  const { path } = first
  const whole = await sendOnce(replica, { ...first, path: `${path}/batch`, headers: {}, body: { signals: items } })
  const results = whole.status === 200 ? (JSON.parse(whole.text).data as { status: number; replayed?: true }[]) : []
  const attempts = signals.map((request, index) => {
    const { status, replayed = false, ...rest } = results[index] ?? {}
    if (status === undefined) return { ...whole, request }
    return { ...whole, request, status, text: JSON.stringify(status === 201 ? { data: rest } : rest), replayed }
  })
  ledger.attempts.push(...attempts)
  return attempts
}

/** Records nine tenths of a limit first, so that the organisation is close to it, and not at it: the gate is called for it. */
export const prefill = (ledger: Ledger, replica: Replica, small: Tenant, limit: number): Promise<Attempt[]> =>
  sendBatch(
    ledger,
    replica,
    Array.from({ length: 0.9 * limit }, () => createSignal(small)),
  )

/** Sends signals without a key at the same time, by turns through the replicas. */
export const sendTogether = (ledger: Ledger, replicas: Replica[], tenant: Tenant, number: number) =>
  Promise.all(
    Array.from({ length: number }, (_, i) =>
      send(ledger, replicas[i % replicas.length] as Replica, createSignal(tenant)),
    ),
  )

/** The sources of requests for one client each, beside those that record signals. */
const sources = [
  createVote,
  createEntry,
  createEntry,
  createEntry,
  createEntry,
  createPush,
  createPush,
  createPush,
  createOther,
]

type System = { ledger: Ledger; replicas: Replica[]; tenants: Tenant[]; author: Author; pace: Pace }

export function startLoad({ ledger, replicas, tenants, author, pace }: System, small: Tenant): Repetition {
  const recording = pace.routes.flatMap((route) =>
    Array.from({ length: pace.clients }, (_, index) => {
      const isSmall = index % CLIENTS_PER_SMALL === 0
      const tenant = isSmall ? small : (tenants[index % tenants.length] as Tenant)
      const isBatching = index % CLIENTS_PER_BATCHING === 1
      const create = (turn: number) =>
        Array.from({ length: isBatching ? BATCH : 1 }, () => createSignal(tenant, turn % 2 === 0))
      const pauseMs = isSmall || isBatching ? SMALL_PAUSE_MS : pace.pauseMs
      return repeat((turn) => persist(ledger, route, create(turn), turn), pauseMs, index)
    }),
  )
  const rest = sources.map((create, index) =>
    repeat((turn) => persist(ledger, replicas, [create(author, turn)], turn), OTHER_PAUSE_MS, index),
  )
  return together([...recording, ...rest])
}

/**
 * Sends a request, or signals as a batch, by turns at each replica; repeatable ones until they are answered, and every
 * other time once more.
 */
async function persist(ledger: Ledger, replicas: Replica[], requests: Request[], turn: number): Promise<void> {
  const [request] = requests as [Request]
  const giveUpAt = performance.now() + PERSIST_MS
  // A refused request is not remembered, so there is no answer to replay.
  let wanted = turn % 4 < 2 ? 2 : 1
  for (let attempt = turn >> 1; performance.now() < giveUpAt; attempt++) {
    const replica = replicas[attempt % replicas.length] as Replica
    const answers =
      requests.length > 1 ? await sendBatch(ledger, replica, requests) : [await send(ledger, replica, request)]
    if (!request.isRepeatable) return
    if (answers.some(hasFailed)) await Bun.sleep(RETRY_MS)
    else if (--wanted === 0 || !answers.every(isAcknowledged)) return
  }
  ledger.unanswered.push(...requests)
}

export function repeat(work: (turn: number) => Promise<unknown>, pauseMs: number, firstTurn = 0): Repetition {
  let stopping = false
  const working = (async () => {
    for (let turn = firstTurn; !stopping; turn++) {
      await work(turn)
      await Bun.sleep(pauseMs)
    }
  })()
  return {
    async stop() {
      stopping = true
      await working
    },
  }
}

const together = (repetitions: Repetition[]): Repetition => ({
  async stop() {
    await Promise.all(repetitions.map((one) => one.stop()))
  },
})
