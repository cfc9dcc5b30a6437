// Compares the recorded signals with the answers that clients got.
import type postgres from 'postgres'
import { compare, type Findings } from './findings.ts'
import type { Ledger } from './load.ts'
import type { Attempt } from './post.ts'

/** The promised five seconds, and some more for the client itself. */
export const DEADLINE_MS = 5_500

/** Compares all rows with all answers so far, and the answers since `from` with the promises. */
export async function auditLedger(
  sql: postgres.Sql,
  { attempts, unanswered }: Ledger,
  from: number,
): Promise<Findings> {
  const problems: string[] = []
  const idsOf = new Map<string, number[]>()
  const rows = await sql<{ id: number; request: string }[]>`
    select id::int, metadata ->> 'request' as request from signals`
  for (const { id, request } of rows) idsOf.set(request, [...(idsOf.get(request) ?? []), id])
  const twice = [...idsOf].filter(([, ids]) => ids.length > 1)
  compare(problems, 'signals recorded more than once', [], twice.slice(0, 3))

  const answers = new Map<string, Set<string>>()
  for (const { request, status, text } of attempts) {
    if (status === 201) answers.set(request.id, (answers.get(request.id) ?? new Set()).add(text))
  }
  const unequal = [...answers].filter(([, texts]) => texts.size > 1).map(([request, texts]) => [request, ...texts])
  compare(problems, 'repeats with another answer', [], unequal.slice(0, 3))
  const missing = [...answers].filter(
    ([request, texts]) => ![...texts].every((text) => idsOf.get(request)?.includes(JSON.parse(text).data.id)),
  )
  compare(
    problems,
    'acknowledged, and not recorded under that id',
    [],
    missing
      .slice(0, 3)
      .map(([request, texts]) => ({ request, answered: [...texts], recorded: idsOf.get(request) ?? [] })),
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
  compare(problems, 'months whose count is not the number of rows', [], [...miscounted])

  const recent = attempts.slice(from)
  const keyed = new Set(
    recent.filter(({ request, status }) => request.keyed && status === 201).map(({ request }) => request.id),
  )
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

/** A status that no client should get, or a refusal below the limit. */
function oddity({ status, text }: Attempt): string | undefined {
  if (![0, 201, 429, 503].includes(status)) return `${status} ${text}`
  if (status !== 429) return undefined
  const { used, limit } = JSON.parse(text).error
  return used < limit ? `refused at ${used} of ${limit}` : undefined
}
