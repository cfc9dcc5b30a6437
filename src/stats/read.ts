import type { Db } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { addCounts, type Counts, shareOf, totalOf } from '../lib/counts.ts'
import { invalidQuery, type QueryOf } from '../lib/params.ts'
import type { Prompt } from '../prompts/find.ts'
import { nextStart, startBefore, startsBetween } from './intervals.ts'
import type { SignalRollup } from './rollup.ts'
import type { Interval, MetadataSplit, SignalCounts, SignalStats, statsParams } from './schema.ts'
import { countByMetadata, type MetadataCount, selectSpanCounts } from './store.ts'

export { type SpanCount, selectMonthCounts, selectSpanCounts } from './store.ts'

type StatsQuery = ReturnType<typeof resolveStatsQuery>

const maxPoints = 1_000

/** How many intervals a range without `since` has. */
const defaultPoints: Record<Interval, number> = { hour: 24, day: 30, week: 12, month: 12 }

/** No signal is older, and the rules of time zones before 1970 are unreliable. */
const earliest = Date.UTC(1970, 0, 2)

/** The range of a query. Without `until` it ends with the current interval. The first of `starts` may be before `since`. */
export function resolveStatsQuery({ interval, tz: zone, by, ...range }: QueryOf<typeof statsParams>, now: Date) {
  const until = range.until ?? nextStart(interval, zone, now)
  const since = range.since ?? startBefore(interval, zone, until, defaultPoints[interval])
  if (since >= until) throw invalidQuery({ path: 'since', message: 'must be before until' })
  if (since.getTime() < earliest) throw invalidQuery({ path: 'since', message: 'must be after 1 January 1970' })
  const starts = startsBetween(interval, zone, since, until, maxPoints + 1)
  if (starts.length > maxPoints) throw tooManyPoints(interval)
  return { interval, zone, since, until, starts, by }
}

const tooManyPoints = (interval: Interval) =>
  invalid(`There are more than ${maxPoints} points. Ask for a shorter range, or a longer interval.`, [
    { path: 'interval', message: `must be longer than ${interval} for this range, which has more than ${maxPoints}` },
  ])

const [maxSplitSignals, maxSplitValues] = [10_000, 20]

/** Counts a prompt's signals by interval, including every signal recorded before the call. */
export async function readStats(db: Db, rollup: SignalRollup, prompt: Prompt, query: StatsQuery) {
  const { interval, zone, since, until, starts, by } = query
  await rollup.catchUp(prompt)
  const found = await selectSpanCounts(db.sql, prompt.organisationId, [prompt.id], [since, ...starts.slice(1), until])
  const spans = new Map(found.map((span) => [span.number, span]))
  const totals = showCounts(addCounts(found))
  return {
    data: starts.map((start, index) => ({
      start: start.toISOString(),
      ...showCounts(spans.get(index + 1) ?? noSignals),
    })),
    totals,
    range: { interval, tz: zone, since: since.toISOString(), until: until.toISOString() },
    ...(by !== null && { by: await splitByMetadata(db, prompt, query, by, totals.total) }),
  } satisfies SignalStats
}

const noSignals: Counts = { positive: 0, negative: 0 }

/** Splits the newest signals of a range by their metadata under a key. */
async function splitByMetadata(db: Db, prompt: Prompt, range: StatsQuery, key: string, inRange: number) {
  const counts = await countByMetadata(db.sql, prompt, range, key, maxSplitSignals, maxSplitValues)
  const [rest, none] = counts.slice(-2) as [MetadataCount, MetadataCount]
  return {
    key,
    signals: none.read,
    overlapping: totalOf(addCounts(counts)) > none.read,
    complete: inRange <= maxSplitSignals,
    values: counts.slice(0, -2).map((split) => ({ value: split.value ?? '', ...showCounts(split) })),
    rest: { values: rest.values, ...showCounts(rest) },
    none: showCounts(none),
  } satisfies MetadataSplit
}

/** Counts as the interface shows them, with a rate of four digits. */
function showCounts(counts: Counts): SignalCounts {
  const { positive, negative } = counts
  return { positive, negative, total: totalOf(counts), rate: shareOf(counts, 1e4) }
}
