export type Tenant = { org: string; organisation: number; key: string; prompt: string }

/** A running replica of the service. Its URL changes with every start. */
export type Replica = { name: string; url: string }

/** A request to record a signal. Its `id` is in the metadata, and is the Idempotency-Key if it has one. */
export type SignalRequest = { id: string; tenant: Tenant; keyed: boolean }

/** An answer; without one the status is zero. */
export type Reply = {
  sentAt: number
  ms: number
  status: number
  /** The body as it was sent. */
  text: string
  replayed: boolean
}

export type Attempt = Reply & { request: SignalRequest; replica: string }

/** Beyond any deadline of the service: a request that takes so long is a finding, not a reason to hang. */
const GIVE_UP_MS = 8_000

export async function send(
  { url }: Replica,
  path: string,
  headers: Record<string, string>,
  body: string,
): Promise<Reply> {
  const sentAt = performance.now()
  const reply = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
    signal: AbortSignal.timeout(GIVE_UP_MS),
  })
    .then(async (response) => ({
      status: response.status,
      text: await response.text(),
      replayed: response.headers.get('idempotent-replayed') === 'true',
    }))
    .catch(() => ({ status: 0, text: '', replayed: false }))
  return { sentAt, ms: performance.now() - sentAt, ...reply }
}

export async function post(replica: Replica, request: SignalRequest): Promise<Attempt> {
  const { id, keyed, tenant } = request
  const headers = { authorization: `Bearer ${tenant.key}`, ...(keyed ? { 'idempotency-key': id } : {}) }
  const body = JSON.stringify({ value: 'positive', metadata: { request: id } })
  const reply = await send(replica, `/api/v1/prompts/${tenant.prompt}/signals`, headers, body)
  return { request, replica: replica.name, ...reply }
}

/** Sends signals of one tenant, and returns of each the answer that a request for it alone would have got. A batch that is not answered is no answer to any of its signals. */
export async function postBatch(replica: Replica, requests: SignalRequest[]): Promise<Attempt[]> {
  const { tenant } = requests[0] as SignalRequest
  const signals = requests.map((request) => ({
    value: 'positive',
    metadata: { request: request.id },
    ...(request.keyed ? { idempotency_key: request.id } : {}),
  }))
  const path = `/api/v1/prompts/${tenant.prompt}/signals/batch`
  const whole = await send(replica, path, { authorization: `Bearer ${tenant.key}` }, JSON.stringify({ signals }))
  const results = whole.status === 200 ? (JSON.parse(whole.text).data as { status: number; replayed?: true }[]) : []
  return requests.map((request, index) => {
    const attempt = { request, replica: replica.name, ...whole }
    const result = results[index]
    if (!result) return attempt
    const { status, replayed = false, ...rest } = result
    return { ...attempt, status, text: JSON.stringify(status === 201 ? { data: rest } : rest), replayed }
  })
}
