import type { Sql } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { commitKey, createCommitFinder, isSameCommit, wholeHashes } from '../history/identity.ts'
import { liveActions, showTitledEntry } from '../history/schema.ts'
import { addCounts, totalOf } from '../lib/counts.ts'
import { invalidQuery } from '../lib/params.ts'
import { lastStorableInstant } from '../lib/times.ts'
import type { Prompt } from '../prompts/find.ts'
import { type ChangeCounts, type DayCounts, daysOf, splitBounds } from './attribute.ts'
import { compareSides, compareWindows } from './compare.ts'
import { findBasis, readChangeCounts, showImpact } from './read.ts'
import type { Impact } from './schema.ts'
import { type ChangeDays, type CompareQuery, type SideBySide, shortestHash } from './schema_compare.ts'
import type { DayPair } from './split.ts'
import { selectSignalCounts } from './store.ts'
import { type KnownCommit, selectEntryOfCommit, selectKnownCommits } from './store_lists.ts'
import { estimateWander } from './wander.ts'

/** More commits with the same beginning are ambiguous anyway. */
const maxKnownCommits = 100
const earliestInstant = new Date('0001-01-01T00:00:00Z')

/** Compares two versions of a prompt that ran at the same time, by the commits that signals name. */
export async function readCompare(sql: Sql, prompt: Prompt, query: CompareQuery): Promise<SideBySide> {
  const given = { base: commitKey(query.base), head: commitKey(query.head) }
  const begins = new Set(Object.values(given).map((commit) => commit.slice(0, shortestHash)))
  const known = await selectKnownCommits(sql, prompt, [...begins], maxKnownCommits)
  // A short hash in signals may begin both.
  known.push(...Object.values(given).map((name) => ({ name, is_entry: false })))
  const resolve = (path: 'base' | 'head'): ResolvedCommit => {
    const found = resolveCommit(given[path], known)
    if (found) return found
    throw invalidQuery({ path, message: 'must be longer: several commits begin with it' })
  }
  const [base, head] = [resolve('base'), resolve('head')]
  if (base.commit === head.commit) throw invalidQuery({ path: 'head', message: 'must be another commit than base' })
  const bounds = splitBounds([query.since ?? earliestInstant, query.until ?? new Date(lastStorableInstant)])
  const commits = [...base.names, ...head.names]
  const [counts, ...changes] = await Promise.all([
    selectSignalCounts(sql, prompt.organisationId, [
      { id: prompt.id, ...bounds, commits, long: [], short: [], shown: [] },
    ]),
    ...[base, head].map(({ names }) => selectEntryOfCommit(sql, prompt, names, liveActions)),
  ])
  const countsOf = (own: typeof counts, { names }: ResolvedCommit) =>
    addCounts(own.filter(({ named_commit }) => named_commit !== null && names.includes(named_commit)))
  const days: DayPair[] = [...Map.groupBy(counts, ({ day }) => day)]
    .map(([date, own]) => ({ date, base: countsOf(own, base), head: countsOf(own, head) }))
    .filter((day) => totalOf(day.base) + totalOf(day.head) > 0)
    .toSorted((a, b) => (a.date < b.date ? -1 : 1))
  const [ofBase, ofHead] = changes.map((change) => (change ? showTitledEntry(change) : null))
  const { base: baseSide, head: headSide, ...compared } = compareSides(days, query.margin, query.share)
  return {
    base: { commit: base.commit, change: ofBase ?? null, ...baseSide },
    head: { commit: head.commit, change: ofHead ?? null, ...headSide },
    ...compared,
  }
}

/** A commit, and every name that signals may have for it. */
type ResolvedCommit = { commit: string; names: string[] }

/**
 * Finds the commit that a client means among those of a prompt's history and signals, all in lower case. A short hash means
 * the whole one that it begins. One that begins two is ambiguous (null), unless an entry has exactly this hash. Any other
 * name is its own commit.
 */
export function resolveCommit(given: string, known: KnownCommit[]): ResolvedCommit | null {
  const names = [...new Set(known.map(({ name }) => name))]
  const whole = wholeHashes([given, ...names])
  const find = createCommitFinder(whole)
  const found = find(given)
  const isAmbiguous = found === null && whole.some((commit) => isSameCommit(commit, given))
  if (isAmbiguous && !known.some(({ name, is_entry }) => is_entry && name === given)) return null
  const commit = found ?? given
  // A short hash counts if it begins no other commit.
  return { commit, names: [...new Set([commit, ...names.filter((name) => find(name) === commit)])] }
}

/** Compares a change with its base, day by day since it went live, by the data of today. */
export async function readChangeDays(sql: Sql, prompt: Prompt, entryId: number, margin: number): Promise<ChangeDays> {
  const known = await readChangeCounts(sql, prompt.organisationId, [prompt.id], [entryId])
  const change = known.changes.get(entryId)
  if (!change) throw notFound()
  const { base, windows } = findBasis(known, change)
  const own = known.counts.get(entryId) as ChangeCounts
  const ofBase = base && (known.counts.get(base.change.id) as ChangeCounts)
  const [baseDays, headDays] = [ofBase && daysOf(ofBase), daysOf(own)]
  return {
    ...(showImpact(known, entryId, margin) as Impact),
    days: differenceByDay(windows, baseDays, headDays, margin),
    health: {
      base: ofBase && baseDays ? describeHealth(ofBase, baseDays.length) : null,
      change: describeHealth(own, headDays.length),
    },
  }
}

function describeHealth(counts: ChangeCounts, days: number) {
  const signals = totalOf(counts)
  return { days, signals, named: signals === 0 ? null : Math.round((counts.by_commit / signals) * 1e4) / 1e4 }
}

/** More days are left out, oldest first. */
const maxShownDays = 366

/**
 * The difference after each day of a change: between its signals up to then and all those of its base. Null for the first
 * change.
 */
function differenceByDay(windows: DayCounts[][], baseDays: DayCounts[] | null, headDays: DayCounts[], margin: number) {
  const first = Math.max(headDays.length - maxShownDays, 0)
  return headDays.slice(first).map(({ date, positive, negative }, index) => {
    const days = headDays.slice(0, first + index + 1)
    const compared =
      baseDays && compareWindows(baseDays, days, estimateWander([...windows, days]), { margin, isOver: true })
    return {
      date,
      positive,
      negative,
      difference: compared?.difference ?? null,
      verdict: compared?.verdict ?? null,
    }
  })
}
