import type { Sql } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { commitKey, createCommitFinder, isSameCommit, spellingsOf, wholeHashes } from '../history/identity.ts'
import { liveActions, showTitledEntry } from '../history/schema.ts'
import { addCounts, totalOf } from '../lib/counts.ts'
import { invalidQuery } from '../lib/params.ts'
import { earliestInstant, lastStorableInstant } from '../lib/times.ts'
import type { Prompt } from '../prompts/find.ts'
import { type ChangeCounts, requestCounts } from './attribute.ts'
import { compareSides } from './compare.ts'
import { compareDays, findBase, findPast, readChanges, showImpact } from './read.ts'
import type { ChangeDays, CompareQuery, SideBySide } from './schema_compare.ts'
import type { DayPair } from './split.ts'
import { selectSignalCounts } from './store.ts'
import { selectCommitEntries } from './store_lists.ts'

/** Compares two versions of a prompt that ran at the same time, by the commits that signals name. */
export async function readCompare(sql: Sql, prompt: Prompt, query: CompareQuery): Promise<SideBySide> {
  const given = { base: commitKey(query.base), head: commitKey(query.head) }
  const asked = Object.values(given)
  const begins = [...new Set(asked.map((commit) => spellingsOf(commit).start ?? commit))]
  const entries = await selectCommitEntries(sql, prompt, begins.map(spellingsOf), liveActions)
  const recorded = entries.map(({ commit_sha }) => commitKey(commit_sha))
  const bounds = [query.since ?? earliestInstant, query.until ?? new Date(lastStorableInstant)]
  // Also names that only begin alike, at any time: a short hash in signals may mean one of them.
  const request = requestCounts(prompt.id, bounds, [...new Set([...asked, ...begins, ...recorded])], asked)
  const found = await selectSignalCounts(sql, prompt.organisationId, [request])
  const named = [...asked, ...found.flatMap(({ named_commit }) => named_commit ?? [])]
  const known = [
    ...recorded.map((name) => ({ name, is_entry: true })),
    ...named.map((name) => ({ name, is_entry: false })),
  ]
  const resolve = (path: 'base' | 'head'): ResolvedCommit => {
    const found = resolveCommit(given[path], known)
    if (found) return found
    throw invalidQuery({ path, message: 'must be longer: several commits begin with it' })
  }
  const [base, head] = [resolve('base'), resolve('head')]
  if (base.commit === head.commit) throw invalidQuery({ path: 'head', message: 'must be another commit than base' })
  const changeOf = ({ names }: ResolvedCommit) => {
    const entry = entries.find(({ commit_sha }) => names.includes(commitKey(commit_sha)))
    return entry ? showTitledEntry(entry) : null
  }
  const counts = found.filter(({ number }) => number === 1)
  const countsOf = (own: typeof counts, { names }: ResolvedCommit) =>
    addCounts(own.filter(({ named_commit }) => named_commit !== null && names.includes(named_commit)))
  const days: DayPair[] = [...Map.groupBy(counts, ({ day }) => day)]
    .map(([date, own]) => ({ date, base: countsOf(own, base), head: countsOf(own, head) }))
    .filter((day) => totalOf(day.base) + totalOf(day.head) > 0)
    .toSorted((a, b) => (a.date < b.date ? -1 : 1))
  const { base: baseSide, head: headSide, ...compared } = compareSides(days, query.margin, query.share)
  return {
    base: { commit: base.commit, change: changeOf(base), ...baseSide },
    head: { commit: head.commit, change: changeOf(head), ...headSide },
    ...compared,
  }
}

/** The name of a commit, in lower case, that a history entry or a signal has. */
type KnownCommit = { name: string; is_entry: boolean }

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
  const known = await readChanges(sql, prompt.organisationId, [prompt.id], () => [entryId])
  const change = known.get(entryId)
  if (!change) throw notFound()
  const base = findBase(known, change)
  const past = findPast(known, change, base)
  const { days } = change.counts
  const first = Math.max(days.length - maxShownDays, 0)
  return {
    ...showImpact(known, change, margin, base),
    days: days.slice(first).map((day, index) => {
      const until = days.slice(0, first + index + 1)
      const { difference, verdict } = compareDays(past, base, until, { margin, isOver: true })
      return { ...day, difference, verdict }
    }),
    health: { base: base && describeHealth(base.counts), change: describeHealth(change.counts) },
  }
}

function describeHealth({ days, by_commit, ...counts }: ChangeCounts) {
  const signals = totalOf(counts)
  return { days: days.length, signals, named: signals === 0 ? null : Math.round((by_commit / signals) * 1e4) / 1e4 }
}
