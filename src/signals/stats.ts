import type { Db } from '../db/client.ts'
import type { SignalCounter } from './count.ts'
import type { StatsQuery } from './read_query.ts'
import type { MetadataSplit, SignalCounts, SignalStats } from './schema_reads.ts'
import { countBetween, countByMetadata, type Position, selectMetadataTexts } from './store_reads.ts'

const [maxSplitSignals, maxSplitValues] = [10_000, 20]
/** One statement reads this many: with metadata of 16 KiB each, some tens of milliseconds of the embedded engine. */
const splitSignalsPerStatement = 1_000

/** Counts a prompt's signals by interval. What was recorded before the call is in the result. */
export async function readStats(
  db: Db,
  counter: SignalCounter,
  promptId: number,
  query: StatsQuery,
): Promise<SignalStats> {
  const { interval, zone, since, until, starts, by } = query
  await counter.catchUp(promptId)
  const found = await countBetween(db.sql, promptId, [since, ...starts.slice(1), until])
  const counts = new Map(found.map((span) => [span.number, span]))
  const totals = toCounts(sum(found, 'positive'), sum(found, 'negative'))
  return {
    data: starts.map((start, index) => {
      const { positive, negative } = counts.get(index + 1) ?? noSignals
      return { start: start.toISOString(), ...toCounts(positive, negative) }
    }),
    totals,
    range: { interval, tz: zone, since: since.toISOString(), until: until.toISOString() },
    ...(by !== null && { by: await splitByMetadata(db, promptId, query, by) }),
  }
}

const noSignals = { positive: 0, negative: 0 }

/** A value of the metadata: how it begins, a signal that has it, and its counts. */
type Split = { begin: string; id: number; positive: number; negative: number }

async function splitByMetadata(db: Db, promptId: number, range: StatsQuery, key: string): Promise<MetadataSplit> {
  const splits = new Map<string, Split>()
  const none = { ...noSignals }
  let signals = 0
  for (let before: Position | null = { at: range.until, id: 0 }; before && signals < maxSplitSignals; ) {
    const step = await countByMetadata(db.sql, promptId, before, range.since, key, splitSignalsPerStatement)
    for (const [hash, begin, id, positive, negative] of step.counts) {
      const split = hash === null ? none : (splits.get(hash) ?? { begin, id, ...noSignals })
      split.positive += positive
      split.negative += negative
      if (hash !== null) splits.set(hash, split as Split)
    }
    signals += step.lookedAt
    before = step.lookedAt < splitSignalsPerStatement ? null : { at: step.lastTime, id: step.lastId }
  }
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
    complete: signals < maxSplitSignals,
    // A signal that was erased meanwhile leaves the begin of its value.
    values: shown.map(({ begin, id, positive, negative }) => ({
      value: texts.get(id) ?? begin,
      ...toCounts(positive, negative),
    })),
    rest: { values: rest.length, ...toCounts(sum(rest, 'positive'), sum(rest, 'negative')) },
    none: toCounts(none.positive, none.negative),
  }
}

const totalOf = ({ positive, negative }: { positive: number; negative: number }): number => positive + negative

function sum<Field extends string>(rows: Record<Field, number>[], field: Field): number {
  return rows.reduce((total, row) => total + row[field], 0)
}

function toCounts(positive: number, negative: number): SignalCounts {
  const total = positive + negative
  return { positive, negative, total, rate: total === 0 ? null : Math.round((positive / total) * 10_000) / 10_000 }
}
