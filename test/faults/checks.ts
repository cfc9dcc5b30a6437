// What must hold through every fault beside the ledger: the limit at each moment, and a service that mends itself.
import type postgres from 'postgres'
import { type Cluster, readGate } from './cluster.ts'
import { compare, type Findings } from './findings.ts'
import { createSignalRequest, type Ledger, send, sendTogether } from './load.ts'
import type { Replica, Tenant } from './post.ts'
import { repeat } from './repeat.ts'

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
        coalesce(o.monthly_limit, p.monthly_limit) as limit
      from organisations o join plans p on p.name = o.plan
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

export async function awaitRecovery({ ledger, replicas, tenants }: Cluster): Promise<Findings> {
  let steady = 0
  return awaitEach(replicas, 'served again', async (replica) => {
    const { status } = await send(ledger, replica, createSignalRequest(tenants[0] as Tenant, false))
    steady = status === 201 ? steady + 1 : 0
    return steady > 0 && steady % STEADY === 0
  })
}

/**
 * Waits until a request through each replica moves the count in Redis. The organisation must be full, as the gate is not
 * called far from the limit; a replica calls it again a second after the last refusal was confirmed.
 */
export function awaitGate({ ledger, replicas, redis }: Cluster, tenant: Tenant): Promise<Findings> {
  return awaitEach(replicas, 'gate used', (replica) => movesGate(ledger, redis, replica, tenant))
}

export async function movesGate(ledger: Ledger, redis: { url: string }, replica: Replica, tenant: Tenant) {
  const before = await readGate(redis.url, tenant.organisation)
  await send(ledger, replica, createSignalRequest(tenant, false))
  const after = await readGate(redis.url, tenant.organisation)
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

/** Uses the month up through both replicas: exactly to its limit, and no further. */
export async function fill(
  { ledger, replicas, sql }: { ledger: Ledger; replicas: Replica[]; sql: postgres.Sql },
  small: Tenant,
  limit: number,
): Promise<Findings> {
  const problems: string[] = []
  const sendAll = (number: number) => sendTogether(ledger, replicas, small, number)
  let statuses: number[] = []
  for (let asked = 0; asked <= limit && !statuses.includes(429); asked += 16) {
    statuses = (await sendAll(16)).map(({ status }) => status)
  }
  for (const { status, text } of await sendAll(2)) {
    const { code, used, limit: said } = JSON.parse(text || '{}').error ?? {}
    compare(problems, 'the request after the last', [429, 'rate_limited', limit, limit], [status, code, used, said])
  }
  const [row] = await sql<[{ rows: number }]>`
    select count(*)::int as rows from signals where organisation_id = ${small.organisation}`
  compare(problems, 'signals of the full organisation', limit, row.rows)
  return { figures: `filled to ${row.rows} of ${limit}`, problems }
}
