// Sends one request to record a signal.

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
export const GIVE_UP_MS = 8_000

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
