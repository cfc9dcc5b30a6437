import type { Sql } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { commitKey, createCommitFinder, isSameCommit, wholeHashes } from '../history/identity.ts'
import { liveActions, showTitledEntry } from '../history/schema.ts'
import { addCounts, totalOf } from '../lib/counts.ts'
import { invalidQuery } from '../lib/params.ts'
import { lastStorableInstant } from '../lib/times.ts'
import type { Prompt } from '../prompts/find.ts'
import { type ChangeCounts, requestCounts } from './attribute.ts'
import { compareSides } from './compare.ts'
import { compareDays, findBase, readChanges, showImpact } from './read.ts'
import { type ChangeDays, type CompareQuery, type SideBySide, shortestHash } from './schema_compare.ts'
import type { DayPair } from './split.ts'
import { selectSignalCounts } from './store.ts'
import { type KnownCommit, selectEntryOfCommit, selectKnownCommits } from './store_lists.ts'

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
  const bounds = [query.since ?? earliestInstant, query.until ?? new Date(lastStorableInstant)]
  const commits = [...base.names, ...head.names]
  const [counts, ...changes] = await Promise.all([
    selectSignalCounts(sql, prompt.organisationId, [
      { ...requestCounts(prompt.id, bounds, commits, []), long: [], short: [] },
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

/** More days are left out, oldest first. */
const maxShownDays = 366

/**
 * Compares a change with its base, by the data of today, after each of its days: its signals up to then with all those of
 * its base.
 */
export async function readChangeDays(sql: Sql, prompt: Prompt, entryId: number, margin: number): Promise<ChangeDays> {
  const known = await readChanges(sql, prompt.organisationId, [prompt.id], [entryId])
  const change = known.get(entryId)
  if (!change) throw notFound()
  const base = findBase(known, change)
  const { days } = change.counts
  const first = Math.max(days.length - maxShownDays, 0)
  return {
    ...showImpact(known, change, margin, base),
    days: days.slice(first).map((day, index) => {
      const until = days.slice(0, first + index + 1)
      const { difference, verdict } = compareDays(known, change, base, until, { margin, isOver: true })
      return { ...day, difference, verdict }
    }),
    health: { base: base && describeHealth(base.counts), change: describeHealth(change.counts) },
  }
}

function describeHealth({ days, by_commit, ...counts }: ChangeCounts) {
  const signals = totalOf(counts)
  return { days: days.length, signals, named: signals === 0 ? null : Math.round((by_commit / signals) * 1e4) / 1e4 }
}
