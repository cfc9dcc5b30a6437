// Compares what is recorded, and what the service says of it, with the answers that clients got.
import type postgres from 'postgres'
import {
  type Attempt,
  type Author,
  isAcknowledged,
  type Ledger,
  type Repetition,
  type Replica,
  repeat,
  type Tenant,
} from './load.ts'

/** What a check found: figures to print, and what is not as it must be. */
export type Findings = { figures: string; problems: string[] }

export type Audited = {
  sql: postgres.Sql
  ledger: Ledger
  replicas: (Replica & { hasEnded: boolean })[]
  tenants: Tenant[]
  author: Author
}

/** The promised five seconds, and some more for the client itself. */
const DEADLINE_MS = 5_500
const COUNTING_PAUSE_MS = 20

export function compare(problems: string[], what: string, expected: unknown, found: unknown): void {
  if (!Bun.deepEquals(expected, found)) {
    problems.push(`${what}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`)
  }
}

/** A fault that nobody noticed proves nothing. */
export function hit(problems: string[], what: string, number: number): void {
  if (number <= 0) problems.push(`the fault did not hit: no ${what}`)
}

export const endOf = ({ sentAt, ms }: Attempt): number => sentAt + ms

export const slowestOf = (attempts: Attempt[]): number =>
  Math.round(attempts.reduce((slowest, { ms }) => Math.max(slowest, ms), 0))

/** The attempts to record a signal that were in flight at that time or later. */
export const touched = ({ ledger }: { ledger: Ledger }, from: number): Attempt[] =>
  ledger.attempts.filter((attempt) => attempt.request.kind === 'signal' && endOf(attempt) >= from)

/** Counts a few signals at a time, as readers and rounds do with many, so that faults come in between. */
export const startCounting = (sql: postgres.Sql, tenants: Tenant[]): Repetition =>
  repeat(async () => {
    for (const { prompt } of tenants) {
      // While the database is away there is nothing to count.
      await sql`select roll_up_signals(organisation_id, id, 7) from prompts where public_id = ${prompt}`.catch(() => {})
    }
  }, COUNTING_PAUSE_MS)

/** Compares all rows with all answers so far, and the answers since `from` with the promises, once nobody writes. */
export const audit = async (audited: Audited, small: Tenant, from: number): Promise<Findings[]> => [
  auditAnswers(audited, from),
  await auditSignals(audited),
  await auditHistory(audited),
  await auditReads(audited, [...audited.tenants, small]),
]

function auditAnswers({ ledger, replicas }: Audited, from: number): Findings {
  const problems: string[] = []
  const recent = ledger.attempts.slice(from)
  const slowest = slowestOf(recent)
  if (slowest > DEADLINE_MS) problems.push(`a request took ${slowest} ms, more than ${DEADLINE_MS} ms`)
  const odd = new Set(recent.map(describeOdd).filter((one) => one !== undefined))
  compare(problems, 'answers of another kind', [], [...odd])
  compare(problems, 'requests never acknowledged', 0, ledger.unanswered.length)
  const ended = replicas.filter(({ hasEnded }) => hasEnded).map(({ name }) => name)
  compare(problems, 'replicas that ended', [], ended)
  return { figures: `${recent.length} answers, slowest ${slowest} ms`, problems }
}

/** A status that no client should get, or a refusal below the limit. */
function describeOdd({ request, status, text }: Attempt): string | undefined {
  if (![0, 503, ...request.statuses].includes(status)) return `${request.kind} ${request.path}: ${status} ${text}`
  if (status !== 429) return undefined
  const { used, limit } = JSON.parse(text).error
  return used < limit ? `refused at ${used} of ${limit}` : undefined
}

async function auditSignals({ sql, ledger }: Audited): Promise<Findings> {
  const problems: string[] = []
  const rows = await sql<{ id: number; request: string }[]>`
    select id::int, metadata ->> 'request' as request from signals`
  const rowsOf = Map.groupBy(rows, ({ request }) => request)
  const twice = [...rowsOf].filter(([, found]) => found.length > 1)
  compare(problems, 'signals recorded more than once', [], twice.slice(0, 3))

  const acknowledged = ledger.attempts.filter(({ request, status }) => request.kind === 'signal' && status === 201)
  const answersOf = Map.groupBy(acknowledged, ({ request }) => request.id)
  const unequal = [...answersOf].filter(([, answers]) => answers.some(({ text }) => text !== answers[0]?.text))
  compare(problems, 'repeats with another answer', [], unequal.slice(0, 3))
  const missing = acknowledged.filter(({ request, text }) => {
    const { id } = JSON.parse(text).data
    return !rowsOf.get(request.id)?.some((row) => row.id === id)
  })
  compare(problems, 'acknowledged, and not recorded under that id', [], missing.slice(0, 3))

  const lastVotes = new Map(
    ledger.attempts
      .filter((attempt) => attempt.request.kind === 'vote' && isAcknowledged(attempt))
      .map(({ request, text }) => [(request.body as { subject: string }).subject, { request, text }]),
  )
  const lost = [...lastVotes.values()].filter(
    ({ request, text }) => rowsOf.get(request.id)?.[0]?.id !== JSON.parse(text).data.id,
  )
  compare(problems, 'last votes that were acknowledged, and are not the recorded ones', [], lost.slice(0, 3))

  const miscounted = await sql`
    select organisation_id::int as organisation, used, coalesce(rows, 0)::int as rows
    from signal_usage
    full join (
      select organisation_id, date_trunc('month', created_at at time zone 'utc')::date as month, count(*) as rows
      from signals group by 1, 2
    ) recorded using (organisation_id, month)
    where used is distinct from coalesce(rows, 0)`
  compare(problems, 'months whose count is not the number of rows', [], [...miscounted])
  const replayed = acknowledged.filter((attempt) => attempt.replayed).length
  const figures = `${answersOf.size} acknowledged so far: missing ${missing.length}, twice ${twice.length}, replayed ${replayed}, unequal ${unequal.length}, votes ${lastVotes.size} lost ${lost.length}, miscounted ${miscounted.length}`
  return { figures, problems }
}

async function auditHistory({ sql, ledger, author, replicas }: Audited): Promise<Findings> {
  const problems: string[] = []
  const prompts = [author.prompt, author.linkedPrompt]
  const rows = await sql<{ id: number; commit: string; prompt: string }[]>`
    select h.id::int, h.commit_sha as commit, p.public_id as prompt
    from history_entries h join prompts p on p.id = h.prompt_id
    where p.public_id = any (${prompts}::text[])`
  const rowsOf = Map.groupBy(rows, ({ commit }) => commit)
  const twice = [...rowsOf].filter(([, found]) => found.length > 1)
  compare(problems, 'entries recorded more than once', [], twice.slice(0, 3))

  const lost = ledger.attempts.filter(isAcknowledged).filter(({ request: { kind, id }, text }) => {
    const [entry] = rowsOf.get(id) ?? []
    if (kind === 'entry') return entry?.prompt !== author.prompt || entry.id !== JSON.parse(text).data.id
    return kind === 'push' && entry?.prompt !== author.linkedPrompt
  })
  compare(problems, 'acknowledged, and not in the history', [], lost.slice(0, 3))
  for (const prompt of prompts) {
    const recorded = rows.filter((row) => row.prompt === prompt).length
    type Page = { pagination?: { total_count: number } }
    const page = await get<Page>(replicas[0] as Replica, author, `/prompts/${prompt}/history?limit=1`)
    compare(problems, `total of the history of ${prompt}`, recorded, page.pagination?.total_count)
  }
  return { figures: `${rows.length} entries: lost ${lost.length}, twice ${twice.length}`, problems }
}

/** Each of these organisations has one prompt with signals, all of this month. Every replica is asked. */
async function auditReads({ sql, replicas }: Audited, tenants: Tenant[]): Promise<Findings> {
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

  type Total = { total: number }
  const sum = (rows: Total[] = []): number => rows.reduce((all, { total }) => all + total, 0)
  for (const tenant of tenants) {
    const rows = await countRows(sql, tenant)
    for (const replica of replicas) {
      type Stats = { totals?: Total }
      type Usage = { data?: { used: number; days: Total[]; prompts: Total[] } }
      const { totals } = await get<Stats>(replica, tenant, `/prompts/${tenant.prompt}/stats?interval=month`)
      const { data } = await get<Usage>(replica, tenant, '/usage')
      const found = { stats: totals?.total, used: data?.used, days: sum(data?.days), prompts: sum(data?.prompts) }
      compare(problems, `signals by ${replica.name}`, { stats: rows, used: rows, days: rows, prompts: rows }, found)
    }
  }
  const asked = tenants.length * replicas.length
  return { figures: `read back ${asked} times, miscounted ${miscounted.length}`, problems }
}

export async function countRows(sql: postgres.Sql, { organisation }: Tenant): Promise<number> {
  const rows = await sql<[{ rows: number }]>`
    select count(*)::int as rows from signals where organisation_id = ${organisation}`
  return rows[0].rows
}

async function get<T>({ url }: Replica, { key }: Tenant, path: string): Promise<T> {
  const answer = await fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${key}` } })
  return answer.json() as Promise<T>
}
