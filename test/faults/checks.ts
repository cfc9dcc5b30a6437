// What must hold after every fault, and at every moment of it.
import type postgres from 'postgres'
import { askRedis } from './clients.ts'
import { ask, type Ledger, wishFor } from './load.ts'
import type { Attempt, Replica, Tenant } from './post.ts'
import type { Scene } from './scene.ts'

/** What a check found: figures to print, and what is not as it must be. */
export type Findings = { figures: string; problems: string[] }

/** The five seconds promised, and a little for the client's own side. */
const DEADLINE_MS = 5_500
const RECOVERY_MS = 5_000
const SAMPLE_MS = 40
const STEADY = 5

export function compare(problems: string[], what: string, expected: unknown, found: unknown): void {
  if (!Bun.deepEquals(expected, found)) {
    problems.push(`${what}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`)
  }
}

/** Looks at the organisation's counter, rows and limit in one snapshot, again and again until it is stopped. */
export function watch(sql: postgres.Sql, { organisation }: Tenant): { stop(): Promise<Findings> } {
  const problems: string[] = []
  let samples = 0
  let highest = 0
  let stopping = false

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

  const watching = (async () => {
    while (!stopping) {
      // While the database is away there is nothing to see.
      await sample().catch(() => {})
      await Bun.sleep(SAMPLE_MS)
    }
  })()
  return {
    async stop() {
      stopping = true
      await watching
      if (samples === 0) problems.push('the counter was never seen')
      return { figures: `seen ${samples} times, wrong ${problems.length}`, problems }
    },
  }
}

/** Holds the rows against everything that clients were ever told, and the answers since `from` against the promises. */
export async function auditLedger(
  sql: postgres.Sql,
  { attempts, unanswered }: Ledger,
  from: number,
): Promise<Findings> {
  const problems: string[] = []
  const idsOf = new Map<string, number[]>()
  const rows = await sql<{ id: number; wish: string }[]>`select id::int, metadata ->> 'wish' as wish from signals`
  for (const { id, wish } of rows) idsOf.set(wish, [...(idsOf.get(wish) ?? []), id])
  const twice = [...idsOf].filter(([, ids]) => ids.length > 1)
  compare(problems, 'signals recorded more than once', [], twice.slice(0, 3))

  const answers = new Map<string, Set<string>>()
  for (const { wish, status, text } of attempts) {
    if (status === 201) answers.set(wish.id, (answers.get(wish.id) ?? new Set()).add(text))
  }
  const unequal = [...answers].filter(([, texts]) => texts.size > 1)
  compare(
    problems,
    'repeats with another answer',
    [],
    unequal.slice(0, 3).map(([wish, texts]) => [wish, ...texts]),
  )
  const missing = [...answers].filter(
    ([wish, texts]) => ![...texts].every((text) => idsOf.get(wish)?.includes(JSON.parse(text).data.id)),
  )
  compare(
    problems,
    'acknowledged but not recorded',
    [],
    missing.slice(0, 3).map(([wish, texts]) => [wish, ...texts]),
  )
  compare(problems, 'keyed signals never answered', 0, unanswered.length)

  const miscounted = await sql`
    select organisation_id::int as organisation, used, coalesce(rows, 0)::int as rows
    from signal_usage
    full join (
      select organisation_id, date_trunc('month', created_at at time zone 'utc')::date as month, count(*) as rows
      from signals group by 1, 2
    ) recorded using (organisation_id, month)
    where used is distinct from coalesce(rows, 0)`
  compare(problems, 'months whose counter is not the number of rows', [], [...miscounted])

  const recent = attempts.slice(from)
  const keyed = new Set(recent.filter(({ wish, status }) => wish.keyed && status === 201).map(({ wish }) => wish.id))
  const replayed = recent.filter((attempt) => attempt.replayed).length
  const slowest = Math.max(...recent.map(({ ms }) => ms))
  if (slowest > DEADLINE_MS) problems.push(`a request took ${Math.round(slowest)} ms, more than ${DEADLINE_MS} ms`)
  compare(problems, 'answers of another kind', [], [...new Set(recent.map(oddity).filter((odd) => odd !== undefined))])
  const figures = [
    `${answers.size} acknowledged so far: missing ${missing.length}, twice ${twice.length}`,
    `${keyed.size} keyed, ${replayed} replayed, unequal ${unequal.length}`,
    `miscounted ${miscounted.length}`,
    `slowest ${Math.round(slowest)} ms`,
  ]
  return { figures: figures.join('; '), problems }
}

/** A status that no load should see, or a refusal while there was room. */
function oddity({ status, text }: Attempt): string | undefined {
  if (![0, 201, 429, 500].includes(status)) return `${status} ${text}`
  if (status !== 429) return undefined
  const { used, limit } = JSON.parse(text).error
  return used < limit ? `refused at ${used} of ${limit}` : undefined
}

/** Waits until each replica records signals steadily again. */
export async function awaitService({ ledger, replicas, tenants }: Scene): Promise<Findings> {
  const since = performance.now()
  const problems: string[] = []
  for (const replica of replicas) {
    for (let steady = 0; steady < STEADY; ) {
      const { status } = await ask(ledger, replica, wishFor(tenants[0] as Tenant, false))
      steady = status === 201 ? steady + 1 : 0
      if (performance.now() - since > RECOVERY_MS) {
        problems.push(`replica ${replica.name} does not serve ${RECOVERY_MS} ms after the fault: last status ${status}`)
        break
      }
    }
  }
  return { figures: `served again after ${Math.round(performance.now() - since)} ms`, problems }
}

/** Waits until a signal recorded through each replica moves the count in Redis. Nothing else may be recording. */
export async function awaitGate({ ledger, replicas, tenants, redis }: Scene): Promise<Findings> {
  const tenant = tenants[0] as Tenant
  const key = `prompt-signals:signals:{${tenant.organisation}}:${new Date().toISOString().slice(0, 7)}`
  const read = () => askRedis(redis.url, (client) => client.get(key)).catch(() => null)
  const since = performance.now()
  const moves = async (replica: Replica) => {
    const before = await read()
    await ask(ledger, replica, wishFor(tenant, false))
    const after = await read()
    return after !== null && after !== before
  }
  const problems: string[] = []
  for (const replica of replicas) {
    while (!(await moves(replica))) {
      if (performance.now() - since > RECOVERY_MS) {
        problems.push(`replica ${replica.name} does not count in Redis ${RECOVERY_MS} ms after the fault`)
        break
      }
    }
  }
  return { figures: `gate used after ${Math.round(performance.now() - since)} ms`, problems }
}

/** Uses the month up through both replicas: exactly to its limit, and no further. */
export async function fill({ ledger, replicas, sql }: Scene, small: Tenant, limit: number): Promise<Findings> {
  const problems: string[] = []
  const askAll = (number: number) =>
    Promise.all(
      Array.from({ length: number }, (_, i) => ask(ledger, replicas[i % 2] as Replica, wishFor(small, false))),
    )
  let statuses: number[] = []
  for (let asked = 0; asked <= limit && !statuses.includes(429); asked += 16) {
    statuses = (await askAll(16)).map(({ status }) => status)
  }
  for (const { status, text } of await askAll(2)) {
    const { code, used, limit: said } = JSON.parse(text || '{}').error ?? {}
    compare(problems, 'the request after the last', [429, 'rate_limited', limit, limit], [status, code, used, said])
  }
  const [row] = await sql<[{ rows: number }]>`
    select count(*)::int as rows from signals where organisation_id = ${small.organisation}`
  compare(problems, 'signals of the full organisation', limit, row.rows)
  return { figures: `filled to ${row.rows} of ${limit}`, problems }
}
