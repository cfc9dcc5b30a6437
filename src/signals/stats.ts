import type { Db } from '../db/client.ts'
import type { SignalCounter } from './count.ts'
import type { StatsQuery } from './read_query.ts'
import { countBetween, countByMetadata, type ValueCount } from './store_reads.ts'

/** The rate is the share of positive signals, to four digits, and null where there are none at all. */
export type Counts = { positive: number; negative: number; total: number; rate: number | null }

export type Stats = {
  data: ({ start: Date } & Counts)[]
  totals: Counts
  range: { interval: string; tz: string; since: Date; until: Date }
  by?: MetadataSplit
}

type MetadataSplit = {
  key: string
  /** How many signals were looked at, the newest of the range, and whether these are all of it. */
  signals: number
  complete: boolean
  /** The values of most signals, the most first. */
  values: ({ value: string } & Counts)[]
  /** All other values together, and how many they are. */
  rest: { values: number } & Counts
  /** The signals whose metadata has no such field. */
  none: Counts
}

const [maxSplitSignals, maxSplitValues] = [10_000, 20]

/** Counts a prompt's signals by interval. What was recorded before the call is in the result. */
export async function readStats(db: Db, counter: SignalCounter, promptId: number, query: StatsQuery): Promise<Stats> {
  const { interval, zone, since, until, starts, by } = query
  await counter.catchUp(promptId)
  const found = await countBetween(db.sql, promptId, [since, ...starts.slice(1), until])
  const counts = new Map(found.map((span) => [span.number, span]))
  const totals = toCounts(sum(found, 'positive'), sum(found, 'negative'))
  return {
    data: starts.map((start, index) => {
      const { positive, negative } = counts.get(index + 1) ?? noSignals
      return { start, ...toCounts(positive, negative) }
    }),
    totals,
    range: { interval, tz: zone, since, until },
    ...(by !== null && { by: await splitByMetadata(db, promptId, query, by) }),
  }
}

const noSignals = { positive: 0, negative: 0 }

async function splitByMetadata(db: Db, promptId: number, range: StatsQuery, key: string): Promise<MetadataSplit> {
  const found = await countByMetadata(db.sql, promptId, range, key, maxSplitSignals, maxSplitValues)
  const ofKind = (kind: ValueCount['kind']) => found.filter((row) => row.kind === kind)
  const countsOf = (rows: ValueCount[]) => toCounts(sum(rows, 'positive'), sum(rows, 'negative'))
  const signals = countsOf(found).total
  return {
    key,
    signals,
    complete: signals < maxSplitSignals,
    values: ofKind('value').map((row) => ({ value: row.value as string, ...countsOf([row]) })),
    rest: { values: sum(ofKind('rest'), 'number'), ...countsOf(ofKind('rest')) },
    none: countsOf(ofKind('none')),
  }
}

function sum<Field extends string>(rows: Record<Field, number>[], field: Field): number {
  return rows.reduce((total, row) => total + row[field], 0)
}

function toCounts(positive: number, negative: number): Counts {
  const total = positive + negative
  return { positive, negative, total, rate: total === 0 ? null : Math.round((positive / total) * 10_000) / 10_000 }
}
