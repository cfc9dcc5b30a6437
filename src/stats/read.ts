import type { Db } from '../db/client.ts'
import type { StatsQuery } from './query.ts'
import type { SignalRollup } from './rollup.ts'
import type { MetadataSplit, SignalCounts, SignalStats } from './schema.ts'
import {
  countBetween,
  countByMetadata,
  countMonth,
  type MetadataCounts,
  type Position,
  selectMetadataTexts,
} from './store.ts'

const [maxSplitSignals, maxSplitValues] = [10_000, 20]
/** One statement reads this many: with metadata of 16 KiB each, some tens of milliseconds of the embedded engine. */
const splitSignalsPerStatement = 1_000

/** Counts a prompt's signals by interval. What was recorded before the call is in the result. */
export async function readStats(
  db: Db,
  rollup: SignalRollup,
  promptId: number,
  query: StatsQuery,
): Promise<SignalStats> {
  const { interval, zone, since, until, starts, by } = query
  await rollup.catchUp(promptId)
  const found = await countBetween(db.sql, promptId, [since, ...starts.slice(1), until])
  const spans = new Map(found.map((span) => [span.number, span]))
  return {
    data: starts.map((start, index) => ({
      start: start.toISOString(),
      ...toCounts(spans.get(index + 1) ?? noSignals),
    })),
    totals: addUp(found),
    range: { interval, tz: zone, since: since.toISOString(), until: until.toISOString() },
    ...(by !== null && { by: await splitByMetadata(db, promptId, query, by) }),
  }
}

/** The signals of a month by prompt and by day. Catching up may take until a few seconds after `beganAt`. */
export async function readMonthCounts(
  db: Db,
  rollup: SignalRollup,
  promptIds: number[],
  month: string,
  beganAt: number,
) {
  await rollup.catchUpEach(promptIds, beganAt)
  return countMonth(db.sql, promptIds, month)
}

type Tally = { positive: number; negative: number }

const noSignals: Tally = { positive: 0, negative: 0 }

/** A value of the metadata: how it begins, and a signal that has it. */
type Split = Tally & { begin: string; id: number }

async function splitByMetadata(db: Db, promptId: number, range: StatsQuery, key: string): Promise<MetadataSplit> {
  const splits = new Map<string, Split>()
  const none = { ...noSignals }
  let signals = 0
  let before: Position | null = { at: range.until, id: 0 }
  while (before && signals < maxSplitSignals) {
    const step: MetadataCounts = await countByMetadata(
      db.sql,
      promptId,
      before,
      range.since,
      key,
      splitSignalsPerStatement,
    )
    for (const [hash, begin, id, positive, negative] of step.counts) {
      const split = hash === null ? none : (splits.get(hash) ?? { begin, id, ...noSignals })
      split.positive += positive
      split.negative += negative
      if (hash !== null) splits.set(hash, split as Split)
    }
    signals += step.lookedAt
    before = step.lookedAt < splitSignalsPerStatement ? null : { at: step.lastTime, id: step.lastId }
  }
  const next = before && (await countByMetadata(db.sql, promptId, before, range.since, key, 1))
  const ranked = [...splits.values()].sort((a, b) => totalOf(b) - totalOf(a) || (a.begin < b.begin ? -1 : 1))
  const [shown, rest] = [ranked.slice(0, maxSplitValues), ranked.slice(maxSplitValues)]
  const found = await selectMetadataTexts(
    db.sql,
    promptId,
    shown.map(({ id }) => id),
    key,
  )
  const texts = new Map(found.map(({ id, text }) => [id, text]))
  return {
    key,
    signals,
    complete: next === null || next.lookedAt === 0,
    // A signal that was erased meanwhile leaves the begin of its value.
    values: shown.map((split) => ({ value: texts.get(split.id) ?? split.begin, ...toCounts(split) })),
    rest: { values: rest.length, ...addUp(rest) },
    none: toCounts(none),
  }
}

const totalOf = ({ positive, negative }: Tally): number => positive + negative

function addUp(tallies: Tally[]): SignalCounts {
  const sum = { ...noSignals }
  for (const { positive, negative } of tallies) {
    sum.positive += positive
    sum.negative += negative
  }
  return toCounts(sum)
}

function toCounts({ positive, negative }: Tally): SignalCounts {
  const total = positive + negative
  return { positive, negative, total, rate: total === 0 ? null : Math.round((positive / total) * 10_000) / 10_000 }
}
