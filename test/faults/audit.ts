// Holds what is recorded against what clients were told.
import type postgres from 'postgres'
import { compare, type Findings } from './findings.ts'
import type { Ledger } from './load.ts'
import type { Attempt } from './post.ts'

/** The five seconds promised, and a little for the client's own side. */
export const DEADLINE_MS = 5_500

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
    'acknowledged, and not recorded under that id',
    [],
    missing.slice(0, 3).map(([wish, texts]) => ({ wish, told: [...texts], recorded: idsOf.get(wish) ?? [] })),
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
