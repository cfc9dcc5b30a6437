// What must hold through every fault beside the ledger: the limit at each moment, and a service that mends itself.
import type postgres from 'postgres'
import { compare, countRows, type Findings } from './audit.ts'
import { createSignal, type Replica, repeat, send, sendTogether, type Tenant } from './load.ts'
import { readGate, type System } from './system.ts'

/** Its first nine tenths fit into one batch. */
export const SMALL_LIMIT = 1_000
/** Shorter than the driver waits for a connection, so that a pool which cannot mend itself is found out. */
const RECOVERY_MS = 2_500
const SAMPLE_MS = 40
/** One success may be chance. */
const STEADY = 3

/** Reads the organisation's count, rows and limit in one snapshot, again and again until it is stopped. */
export function watch(sql: postgres.Sql, { organisation }: Tenant): { stop(): Promise<Findings> } {
  const problems: string[] = []
  let samples = 0
  let highest = 0

  async function sample(): Promise<void> {
    const [row] = await sql<[{ used: number; rows: number; limit: number }]>`
      select
        (select coalesce(sum(used), 0)::int from signal_usage u where u.organisation_id = o.id) as used,
        (select count(*)::int from signals s where s.organisation_id = o.id) as rows,
        o.monthly_limit as limit
      from organisations o
      where o.id = ${organisation}`
    samples += 1
    // After a downgrade there may be more than the limit, but never more than there was ever room for.
    highest = Math.max(highest, row.limit)
    if (row.rows > highest || row.used !== row.rows) problems.push(`a moment with ${JSON.stringify(row)}`)
  }

  // While the database is away there is nothing to see.
  const watching = repeat(() => sample().catch(() => {}), SAMPLE_MS)
  return {
    async stop() {
      await watching.stop()
      if (samples === 0) problems.push('the count was never read')
      return { figures: `seen ${samples} times, wrong ${problems.length}`, problems }
    },
  }
}

export async function awaitRecovery({ ledger, replicas, tenants }: System): Promise<Findings> {
  let steady = 0
  return awaitEach(replicas, 'served again', async (replica) => {
    const { status } = await send(ledger, replica, createSignal(tenants[0] as Tenant))
    steady = status === 201 ? steady + 1 : 0
    return steady > 0 && steady % STEADY === 0
  })
}

/**
 * Waits until a request through each replica moves the count in Redis. The organisation must be full, as the gate is not
 * called far from the limit; a replica calls it again a second after the last refusal was confirmed.
 */
export const awaitGate = (system: System, tenant: Tenant): Promise<Findings> =>
  awaitEach(system.redisUrls.length === 0 ? [] : system.replicas, 'gate used', (replica) =>
    movesGate(system, replica, tenant),
  )

export async function movesGate({ ledger, redisUrls }: System, replica: Replica, tenant: Tenant): Promise<boolean> {
  const before = await readGate(redisUrls, tenant)
  await send(ledger, replica, createSignal(tenant))
  const after = await readGate(redisUrls, tenant)
  return after !== null && after !== before
}

async function awaitEach(replicas: Replica[], what: string, isSo: (replica: Replica) => Promise<boolean>) {
  const problems: string[] = []
  const times: number[] = []
  for (const replica of replicas) {
    const since = performance.now()
    const ms = () => Math.round(performance.now() - since)
    let done = false
    while (!done && ms() <= RECOVERY_MS) done = await isSo(replica)
    times.push(ms())
    if (!done || ms() > RECOVERY_MS)
      problems.push(`${what} by ${replica.name}: expected within ${RECOVERY_MS} ms, not after ${ms()} ms`)
  }
  return { figures: `${what} after ${times.join(' and ')} ms`, problems }
}

/** Uses the month up through the replicas: exactly to its limit, and no further. */
export async function fill({ ledger, replicas, sql }: System, small: Tenant): Promise<Findings> {
  const problems: string[] = []
  const sendAll = (number: number) => sendTogether(ledger, replicas, small, number)
  let statuses: number[] = []
  for (let asked = 0; asked <= SMALL_LIMIT && !statuses.includes(429); asked += 16) {
    statuses = (await sendAll(16)).map(({ status }) => status)
  }
  for (const { status, text } of await sendAll(2)) {
    const { code, used, limit } = JSON.parse(text || '{}').error ?? {}
    const expected = [429, 'rate_limited', SMALL_LIMIT, SMALL_LIMIT]
    compare(problems, 'the request after the last', expected, [status, code, used, limit])
  }
  const rows = await countRows(sql, small)
  compare(problems, 'signals of the full organisation', SMALL_LIMIT, rows)
  return { figures: `filled to ${rows} of ${SMALL_LIMIT}`, problems }
}
