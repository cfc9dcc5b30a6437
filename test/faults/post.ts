export type Tenant = { org: string; organisation: number; key: string; prompt: string }

/** A running replica of the service. Its URL changes with every start. */
export type Replica = { name: string; url: string }

/** A request to record a signal. Its `id` is in the metadata, and is the Idempotency-Key if it has one. */
export type SignalRequest = { id: string; tenant: Tenant; keyed: boolean }

export type Attempt = {
  request: SignalRequest
  replica: string
  sentAt: number
  ms: number
  /** Zero without an answer. */
  status: number
  /** The body as it was sent. */
  text: string
  replayed: boolean
}

/** Beyond any deadline of the service: a request that takes so long is a finding, not a reason to hang. */
const GIVE_UP_MS = 8_000

export async function post(replica: Replica, request: SignalRequest): Promise<Attempt> {
  const { id, keyed, tenant } = request
  const sentAt = performance.now()
  const reply = await fetch(`${replica.url}/api/v1/prompts/${tenant.prompt}/signals`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${tenant.key}`,
      'content-type': 'application/json',
      ...(keyed ? { 'idempotency-key': id } : {}),
    },
    body: JSON.stringify({ value: 'positive', metadata: { request: id } }),
    signal: AbortSignal.timeout(GIVE_UP_MS),
  })
    .then(async (response) => ({
      status: response.status,
      text: await response.text(),
      replayed: response.headers.get('idempotent-replayed') === 'true',
    }))
    .catch(() => ({ status: 0, text: '', replayed: false }))
  return { request, replica: replica.name, sentAt, ms: performance.now() - sentAt, ...reply }
}

/** Sends signals of one tenant, and returns of each the answer that a request for it alone would have got. A batch that is not answered is no answer to any of its signals. */
export async function postBatch(replica: Replica, requests: SignalRequest[]): Promise<Attempt[]> {
  const sentAt = performance.now()
  const { tenant } = requests[0] as SignalRequest
  const signals = requests.map((request) => ({
    value: 'positive',
    metadata: { request: request.id },
    ...(request.keyed ? { idempotency_key: request.id } : {}),
  }))
  const attempts = (answers: Pick<Attempt, 'status' | 'text' | 'replayed'>[]) =>
    requests.map((request, index) => ({
      request,
      replica: replica.name,
      sentAt,
      ms: performance.now() - sentAt,
      ...(answers[index] as (typeof answers)[number]),
    }))
  try {
    const response = await fetch(`${replica.url}/api/v1/prompts/${tenant.prompt}/signals/batch`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ signals }),
      signal: AbortSignal.timeout(GIVE_UP_MS),
    })
    const text = await response.text()
    if (response.status !== 200) {
      return attempts(requests.map(() => ({ status: response.status, text, replayed: false })))
    }
    const { data } = JSON.parse(text) as { data: { status: number; replayed?: true }[] }
    return attempts(
      data.map(({ status, replayed = false, ...rest }) => ({
        status,
        text: JSON.stringify(status === 201 ? { data: rest } : rest),
        replayed,
      })),
    )
  } catch {
    return attempts(requests.map(() => ({ status: 0, text: '', replayed: false })))
  }
}
