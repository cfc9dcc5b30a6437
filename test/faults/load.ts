// Clients that record signals for several organisations through both replicas, and a ledger of the answers they got.
import { postBatch } from './batches.ts'
import { type Attempt, type Pause, post, type Replica, type SignalRequest, type Tenant } from './post.ts'

export type Ledger = { attempts: Attempt[]; unanswered: SignalRequest[] }

export type Load = {
  /** Sends no further requests, and waits until those under way are answered. */
  stop(): Promise<void>
}

const CLIENTS = 48
/** Every twelfth client works for the organisation that is close to its limit. */
const CLIENTS_PER_SMALL = 12
/** The pause between two signals of a client: enough load to have requests under way at every moment, and no more rows than can be checked. */
const PAUSE_MS = 10
/** Every sixteenth client sends batches of so many signals. */
const [CLIENTS_PER_BATCHING, BATCH] = [16, 20] as const
const SMALL_PAUSE_MS = 200
const RETRY_MS = 50
/** A keyed signal is repeated until it is answered; one that is not in this time never will be. */
const PERSIST_MS = 30_000

let requests = 0

export const createLedger = (): Ledger => ({ attempts: [], unanswered: [] })

export const createSignalRequest = (tenant: Tenant, keyed: boolean): SignalRequest => ({
  id: `request-${++requests}`,
  tenant,
  keyed,
})

export async function send(ledger: Ledger, replica: Replica, request: SignalRequest, pause?: Pause): Promise<Attempt> {
  const attempt = await post(replica, request, pause)
  ledger.attempts.push(attempt)
  return attempt
}

export function startLoad(ledger: Ledger, replicas: Replica[], tenants: Tenant[], small: Tenant): Load {
  let stopping = false

  async function client(index: number): Promise<void> {
    const isSmall = index % CLIENTS_PER_SMALL === 0
    const tenant = isSmall ? small : (tenants[index % tenants.length] as Tenant)
    const isBatching = index % CLIENTS_PER_BATCHING === 1
    for (let turn = index; !stopping; turn++) {
      if (isBatching) {
        const requests = Array.from({ length: BATCH }, () => createSignalRequest(tenant, turn % 2 === 0))
        await sendBatches(ledger, replicas, requests, turn)
        await Bun.sleep(SMALL_PAUSE_MS)
        continue
      }
      const request = createSignalRequest(tenant, turn % 2 === 0)
      if (request.keyed) await persist(ledger, replicas, request, turn)
      else await send(ledger, replicas[(turn >> 1) % replicas.length] as Replica, request)
      await Bun.sleep(isSmall ? SMALL_PAUSE_MS : PAUSE_MS)
    }
  }

  const clients = Array.from({ length: CLIENTS }, (_, index) => client(index))
  return {
    async stop() {
      stopping = true
      await Promise.all(clients)
    },
  }
}

/** Sends a batch; one with keys again until all of its signals are answered, by turns at each replica. */
async function sendBatches(
  ledger: Ledger,
  replicas: Replica[],
  requests: SignalRequest[],
  turn: number,
): Promise<void> {
  const giveUpAt = performance.now() + PERSIST_MS
  for (let attempt = turn; performance.now() < giveUpAt; attempt++) {
    const attempts = await postBatch(replicas[attempt % replicas.length] as Replica, requests)
    ledger.attempts.push(...attempts)
    if (!requests[0]?.keyed || attempts.every(({ status }) => status === 201 || status === 429)) return
    await Bun.sleep(RETRY_MS)
  }
  ledger.unanswered.push(...requests)
}

/** Repeats the request until it is answered, and every other time once more, by turns at each replica. */
async function persist(ledger: Ledger, replicas: Replica[], request: SignalRequest, turn: number): Promise<void> {
  const giveUpAt = performance.now() + PERSIST_MS
  let wanted = turn % 4 === 0 ? 2 : 1
  for (let attempt = turn >> 1; performance.now() < giveUpAt; attempt++) {
    const { status } = await send(ledger, replicas[attempt % replicas.length] as Replica, request)
    if (status === 201) wanted -= 1
    // A refused request is not remembered, so there is no answer to replay.
    if (wanted === 0 || (status !== 0 && status !== 201 && status !== 500)) return
    if (status !== 201) await Bun.sleep(RETRY_MS)
  }
  ledger.unanswered.push(request)
}
