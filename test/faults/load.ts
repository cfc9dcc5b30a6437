// Clients that record signals for several organisations through both replicas, and a ledger of all they were told.
import { type Attempt, post, type Replica, type Tenant, type Wish } from './post.ts'

export type Ledger = { attempts: Attempt[]; unanswered: Wish[] }

export type Load = {
  /** No new wishes; waits until those under way are answered. */
  stop(): Promise<void>
}

const CLIENTS = 48
/** One client in so many is for the organisation that is close to its limit. */
const CLIENTS_PER_SMALL = 12
/** Between two signals of a client: enough load to have requests under way at every moment, and no more rows than can be checked. */
const PAUSE_MS = 10
const SMALL_PAUSE_MS = 200
const RETRY_MS = 50
/** A keyed signal is asked for again until it is answered; one that is not in this time never will be. */
const PERSIST_MS = 30_000

let wishes = 0

export const createLedger = (): Ledger => ({ attempts: [], unanswered: [] })

export const wishFor = (tenant: Tenant, keyed: boolean): Wish => ({ id: `wish-${++wishes}`, tenant, keyed })

export async function ask(ledger: Ledger, replica: Replica, wish: Wish, pause?: Promise<void>): Promise<Attempt> {
  const attempt = await post(replica, wish, pause)
  ledger.attempts.push(attempt)
  return attempt
}

export function startLoad(ledger: Ledger, replicas: Replica[], tenants: Tenant[], small: Tenant): Load {
  let stopping = false

  async function client(index: number): Promise<void> {
    const isSmall = index % CLIENTS_PER_SMALL === 0
    const tenant = isSmall ? small : (tenants[index % tenants.length] as Tenant)
    for (let turn = index; !stopping; turn++) {
      const wish = wishFor(tenant, turn % 2 === 0)
      if (wish.keyed) await persist(ledger, replicas, wish, turn)
      else await ask(ledger, replicas[(turn >> 1) % replicas.length] as Replica, wish)
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

/** Asks until there is an answer, and every other time once more, by turns at each replica. */
async function persist(ledger: Ledger, replicas: Replica[], wish: Wish, turn: number): Promise<void> {
  const giveUpAt = performance.now() + PERSIST_MS
  let wanted = turn % 4 === 0 ? 2 : 1
  for (let attempt = turn >> 1; performance.now() < giveUpAt; attempt++) {
    const { status } = await ask(ledger, replicas[attempt % replicas.length] as Replica, wish)
    if (status === 201) wanted -= 1
    // A refusal pins nothing, so there is nothing to ask for again.
    if (wanted === 0 || (status !== 0 && status !== 201 && status !== 500)) return
    if (status !== 201) await Bun.sleep(RETRY_MS)
  }
  ledger.unanswered.push(wish)
}
