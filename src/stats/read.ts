import type { Db } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { addCounts, type Counts, shareOf, totalOf } from '../lib/counts.ts'
import { invalidQuery, type QueryOf } from '../lib/params.ts'
import type { Prompt } from '../prompts/find.ts'
import { nextStart, startBefore, startsBetween } from './intervals.ts'
import type { SignalRollup } from './rollup.ts'
import type { Interval, MetadataSplit, SignalCounts, SignalStats, statsParams } from './schema.ts'
import { countByMetadata, type MetadataCounts, type Position, selectMetadataValues, selectSpanCounts } from './store.ts'

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
/** Bounds how long a statement holds the embedded engine's one connection: metadata may have 16 KiB. */
const splitSignalsPerStatement = 1_000

/** Counts a prompt's signals by interval, including every signal recorded before the call. */
export async function readStats(db: Db, rollup: SignalRollup, prompt: Prompt, query: StatsQuery) {
  const { interval, zone, since, until, starts, by } = query
  await rollup.catchUp(prompt)
  const found = await selectSpanCounts(db.sql, prompt.organisationId, [prompt.id], [since, ...starts.slice(1), until])
  const spans = new Map(found.map((span) => [span.number, span]))
  return {
    data: starts.map((start, index) => ({
      start: start.toISOString(),
      ...showCounts(spans.get(index + 1) ?? noSignals),
    })),
    totals: showCounts(addCounts(found)),
    range: { interval, tz: zone, since: since.toISOString(), until: until.toISOString() },
    ...(by !== null && { by: await splitByMetadata(db, prompt, query, by) }),
  } satisfies SignalStats
}

const noSignals: Counts = { positive: 0, negative: 0 }

/** The signals with one metadata value: its first characters, and the id of one of the signals. */
type Split = Counts & { begin: string; id: number }

/** Splits the newest signals of a range by their metadata under a key. */
async function splitByMetadata(db: Db, prompt: Prompt, range: StatsQuery, key: string): Promise<MetadataSplit> {
  const splits = new Map<string, Split>()
  const none = { ...noSignals }
  let signals = 0
  let before: Position | null = { at: range.until, id: 0 }
  const readBefore = (position: Position, limit: number): Promise<MetadataCounts> =>
    countByMetadata(db.sql, prompt, position, range.since, key, limit)
  while (before && signals < maxSplitSignals) {
    const step: MetadataCounts = await readBefore(before, splitSignalsPerStatement)
    for (const [hash, begin, id, positive, negative] of step.counts) {
      const split = hash === null ? none : (splits.get(hash) ?? { begin, id, ...noSignals })
      split.positive += positive
      split.negative += negative
      if (hash !== null) splits.set(hash, split as Split)
    }
    signals += step.signals
    before = step.signals < splitSignalsPerStatement ? null : step.last
  }
  const isComplete = before === null || (await readBefore(before, 1)).signals === 0
  const ranked = [...splits.values()].sort((a, b) => totalOf(b) - totalOf(a) || (a.begin < b.begin ? -1 : 1))
  const [shown, rest] = [ranked.slice(0, maxSplitValues), ranked.slice(maxSplitValues)]
  const ids = shown.map(({ id }) => id)
  const found = await selectMetadataValues(db.sql, prompt, ids, key)
  const values = new Map(found.map(({ id, text }) => [id, text]))
  return {
    key,
    signals,
    complete: isComplete,
    // The signal may have been erased since. Then only the first characters of its value are known.
    values: shown.map((split) => ({ value: values.get(split.id) ?? split.begin, ...showCounts(split) })),
    rest: { values: rest.length, ...showCounts(addCounts(rest)) },
    none: showCounts(none),
  }
}

/** Counts as the interface shows them, with a rate of four digits. */
function showCounts(counts: Counts): SignalCounts {
  const { positive, negative } = counts
  return { positive, negative, total: totalOf(counts), rate: shareOf(counts, 1e4) }
}
