// Compares what the service says of the signals with the signals that there are.
import type postgres from 'postgres'
import { compare, type Findings } from './findings.ts'
import type { Replica, Tenant } from './post.ts'
import { type Repetition, repeat } from './repeat.ts'

const PAUSE_MS = 20

/** Counts a few signals at a time, as readers and rounds do with many, so that faults come in between. */
export const startCounting = (sql: postgres.Sql, tenants: Tenant[]): Repetition =>
  repeat(async () => {
    for (const { prompt } of tenants) {
      // While the database is away there is nothing to count.
      await sql`select roll_up_signals(organisation_id, id, 7) from prompts where public_id = ${prompt}`.catch(() => {})
    }
  }, PAUSE_MS)

/** Every replica is asked, once nobody writes. */
export async function auditReads(sql: postgres.Sql, replicas: Replica[], tenants: Tenant[]): Promise<Findings> {
  const problems: string[] = []
  const miscounted = await sql`
    select p.public_id as prompt, c.counted::int, r.rows::int
    from prompts p
    cross join lateral (
      select coalesce(sum(c.positive + c.negative), 0) as counted
      from count_signals_between(p.organisation_id, p.id, '{-infinity,infinity}') c
    ) c
    cross join lateral (select count(*) as rows from signals s where s.prompt_id = p.id) r
    where c.counted <> r.rows`
  compare(problems, 'prompts whose counts are not the number of rows', [], [...miscounted])

  let asked = 0
  for (const replica of replicas) {
    for (const tenant of tenants) {
      const [row] = await sql<[{ rows: number }]>`
        select count(*)::int as rows from signals where organisation_id = ${tenant.organisation}`
      const { rows } = row
      const expected = { stats: rows, used: rows, days: rows, prompts: rows }
      compare(problems, `signals by ${replica.name}`, expected, await ask(replica, tenant))
      asked += 1
    }
  }
  return { figures: `read back ${asked} times, miscounted ${miscounted.length}`, problems }
}

/** Each of these organisations has one prompt with signals, all of this month. */
async function ask({ url }: Replica, { key, prompt }: Tenant) {
  const get = async (path: string) => {
    const answer = await fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } })
    return answer.json()
  }
  const { totals } = (await get(`/prompts/${prompt}/stats?interval=month`)) as { totals?: { total: number } }
  const { data } = (await get('/usage')) as { data?: { used: number; days: Total[]; prompts: Total[] } }
  return {
    stats: totals?.total ?? -1,
    used: data?.used ?? -1,
    days: sum(data?.days ?? []),
    prompts: sum(data?.prompts ?? []),
  }
}

type Total = { total: number }
const sum = (rows: Total[]): number => rows.reduce((all, { total }) => all + total, 0)
