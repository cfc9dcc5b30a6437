// Clients that record signals for several organisations through both replicas, and a ledger of the answers they got.
import { type Attempt, post, postBatch, type Replica, type SignalRequest, type Tenant } from './post.ts'
import { persist, type Repetition, repeat, together } from './repeat.ts'

export type Ledger = { attempts: Attempt[]; unanswered: SignalRequest[] }

const CLIENTS = 48
/** Every twelfth client works for the organisation that is close to its limit. */
const CLIENTS_PER_SMALL = 12
/** The pause between two signals of a client: enough load to have requests under way at every moment, and no more rows than can be checked. */
const PAUSE_MS = 10
/** Every sixteenth client sends batches of so many signals. */
const [CLIENTS_PER_BATCHING, BATCH] = [16, 20] as const
const SMALL_PAUSE_MS = 200

let requests = 0

export const createLedger = (): Ledger => ({ attempts: [], unanswered: [] })

export const createSignalRequest = (tenant: Tenant, keyed: boolean): SignalRequest => ({
  id: `request-${++requests}`,
  tenant,
  keyed,
})

export async function send(ledger: Ledger, replica: Replica, request: SignalRequest): Promise<Attempt> {
  const attempt = await post(replica, request)
  ledger.attempts.push(attempt)
  return attempt
}

/** Records nine tenths of a limit first, so that the organisation is close to it, and not at it: the gate is called for it. */
export async function prefill(ledger: Ledger, replica: Replica, small: Tenant, limit: number): Promise<void> {
  const requests = Array.from({ length: 0.9 * limit }, () => createSignalRequest(small, false))
  ledger.attempts.push(...(await postBatch(replica, requests)))
}

/** Sends signals without a key at the same time, by turns through both replicas. */
export const sendTogether = (ledger: Ledger, replicas: Replica[], tenant: Tenant, number: number) =>
  Promise.all(
    Array.from({ length: number }, (_, i) =>
      send(ledger, replicas[i % replicas.length] as Replica, createSignalRequest(tenant, false)),
    ),
  )

export function startLoad(
  ledger: Ledger,
  replicas: Replica[],
  tenants: Tenant[],
  small: Tenant,
  number = CLIENTS,
): Repetition {
  const clients = Array.from({ length: number }, (_, index) => {
    const isSmall = index % CLIENTS_PER_SMALL === 0
    const tenant = isSmall ? small : (tenants[index % tenants.length] as Tenant)
    if (index % CLIENTS_PER_BATCHING === 1) {
      return repeat((turn) => sendBatch(ledger, replicas, tenant, turn), SMALL_PAUSE_MS, index)
    }
    return repeat(
      (turn) => sendSignal(ledger, replicas, createSignalRequest(tenant, turn % 2 === 0), turn),
      isSmall ? SMALL_PAUSE_MS : PAUSE_MS,
      index,
    )
  })
  return together(clients)
}

/** Sends a batch; one with keys again until all of its signals are answered. */
async function sendBatch(ledger: Ledger, replicas: Replica[], tenant: Tenant, turn: number): Promise<void> {
  const isKeyed = turn % 2 === 0
  const requests = Array.from({ length: BATCH }, () => createSignalRequest(tenant, isKeyed))
  const isDone = await persist(replicas, turn, async (replica) => {
    const attempts = await postBatch(replica, requests)
    ledger.attempts.push(...attempts)
    return !isKeyed || attempts.every(({ status }) => status === 201 || status === 429) ? 'done' : 'failed'
  })
  if (!isDone) ledger.unanswered.push(...requests)
}

/** Sends a signal; one with a key again until it is answered, and every other time once more. */
async function sendSignal(ledger: Ledger, replicas: Replica[], request: SignalRequest, turn: number): Promise<void> {
  let wanted = turn % 4 === 0 ? 2 : 1
  const isDone = await persist(replicas, turn >> 1, async (replica) => {
    const { status } = await send(ledger, replica, request)
    if (!request.keyed) return 'done'
    if (status === 201) wanted -= 1
    // A refused request is not remembered, so there is no answer to replay.
    if (wanted === 0 || (status !== 0 && status !== 201 && status !== 503)) return 'done'
    return status === 201 ? 'again' : 'failed'
  })
  if (!isDone) ledger.unanswered.push(request)
}
