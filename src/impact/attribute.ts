import { createCommitFinder, isLongHash, isShortHash, spellingsOf } from '../history/identity.ts'
import { addCounts, type Counts, totalOf } from '../lib/counts.ts'
import { lastStorableInstant } from '../lib/times.ts'
import type { ChangeWindow } from './timeline.ts'

/**
 * All signals of a span and day (UTC), or only those that name this commit. Span 0 is before the first bound, span n begins
 * at the nth.
 */
export type SignalCount = Counts & { named_commit: string | null; number: number; day: string }

export type DayCounts = Counts & { date: string }

/** The signals that belong to a change, and how many of them name its commit. */
export type ChangeCounts = Counts & {
  by_commit: number
  /** The days on which it has signals, in order. */
  days: DayCounts[]
  /** The commit of a change that each name in the signals of the prompt means. */
  meanings: Map<string, string>
}

/**
 * The instants at which windows begin or end, ascending. No change goes live within a window, so each window is the span
 * between one of them and the next.
 */
export function boundsOf(changes: ChangeWindow[]): Date[] {
  const ends = changes.flatMap((one) => [one.live_until ?? new Date(lastStorableInstant), one.named_until ?? []].flat())
  const times = [...changes.map((one) => one.created_at), ...ends].map((time) => time.getTime())
  return [...new Set(times)].toSorted((a, b) => a - b).map((time) => new Date(time))
}

/**
 * The signals of a prompt to be counted. Rollups hold whole days and quarter hours: one that a bound splits is read in
 * smaller parts. Commits are in lower case.
 */
export type CountRequest = ReturnType<typeof requestCounts>

/** `shown` are the commits whose signals count at any time, not only within the bounds. */
export function requestCounts(id: number, bounds: Date[], commits: string[], shown: string[]) {
  const splitUnits = (minutes: number) => {
    const unit = 60_000 * minutes
    const starts = bounds.map((bound) => Math.floor(bound.getTime() / unit) * unit)
    const split = starts.filter((start, index) => start !== bounds[index]?.getTime())
    return [...new Set(split)].map((start) => new Date(start).toISOString())
  }
  return {
    id,
    bounds: bounds.map((bound) => bound.toISOString()),
    split_days: splitUnits(1440),
    split_quarters: splitUnits(15),
    commits,
    /** The hashes that signals may shorten. */
    long: commits.filter(isLongHash),
    /** The short hashes. A signal may name the same commit by a longer one. */
    short: commits.filter(isShortHash),
    /** Hashes by their first 7 characters. */
    shown: shown.map((commit) => spellingsOf(commit).start ?? commit),
  }
}

/**
 * Decides which signals belong to each change of a prompt. A signal belongs to the change whose commit it names
 * (`named_from`), else to the change that was live at its time. So a change has the signals of its window, less those that
 * name any change, plus those that name its commit. `commits` are those of all changes of the prompt.
 */
export function attribute<T extends ChangeWindow>(changes: T[], commits: string[], signals: SignalCount[]) {
  const bounds = boundsOf(changes)
  const meanings = new Map<string, string>()
  const days = new Map(changes.map(({ id }) => [id, new Map<string, Counts>()]))
  const byCommit = new Map<number, number>()
  const numbers = new Map(bounds.map((bound, index) => [bound.getTime(), index + 1]))
  // Of changes at the same instant, only the last one has a window.
  const lasting = changes.filter(({ created_at, live_until }) => live_until === null || live_until > created_at)
  const ofWindow = new Map(lasting.map(({ id, created_at }) => [numbers.get(created_at.getTime()), id]))
  const findCommit = createCommitFinder(commits)
  const ofCommit = Map.groupBy(changes, ({ commit_key }) => commit_key)
  const isNamedIn = (number: number, { named_from, named_until }: ChangeWindow) => {
    // No change begins within a window, so its start decides.
    const start = number === 0 ? Number.NEGATIVE_INFINITY : Number(bounds[number - 1])
    return start >= Number(named_from ?? Number.NEGATIVE_INFINITY) && start < Number(named_until ?? lastStorableInstant)
  }

  const add = (id: number | undefined, { day, positive, negative }: SignalCount, sign: 1 | -1) => {
    const ofDays = days.get(id as number)
    const ofDay = ofDays?.get(day) ?? { positive: 0, negative: 0 }
    ofDays?.set(day, addCounts([ofDay, { positive: sign * positive, negative: sign * negative }]))
  }

  for (const count of signals) {
    const inWindow = ofWindow.get(count.number)
    if (count.named_commit === null) {
      add(inWindow, count, 1)
      continue
    }
    // Null if the name fits no change, or several.
    const commit = findCommit(count.named_commit)
    if (commit === null) continue
    meanings.set(count.named_commit, commit)
    add(inWindow, count, -1)
    const named = ofCommit.get(commit)?.find((change) => isNamedIn(count.number, change))
    if (!named) continue
    add(named.id, count, 1)
    byCommit.set(named.id, (byCommit.get(named.id) ?? 0) + totalOf(count))
  }

  return changes.map((change): T & { counts: ChangeCounts } => {
    const own = [...(days.get(change.id) ?? [])].map(([date, counts]): DayCounts => ({ date, ...counts }))
    const counted = own.filter((day) => totalOf(day) > 0).toSorted((a, b) => (a.date < b.date ? -1 : 1))
    const counts = { ...addCounts(counted), by_commit: byCommit.get(change.id) ?? 0, days: counted, meanings }
    return { ...change, counts }
  })
}
