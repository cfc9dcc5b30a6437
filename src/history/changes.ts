// Decides which entries are changes, and which change is announced.
import { dayMs, minuteMs } from '../lib/times.ts'
import { commitKey, comparePlaces, hasLiveAction, type KnownEntry } from './identity.ts'

type Placed = Pick<KnownEntry, 'id' | 'action' | 'branch_name' | 'commit_sha' | 'created_at' | 'is_change'>

/** With `isTakenOver`, another entry stood for the change before, so it is no news. */
export type PlacedEntry = Placed & { isTakenOver?: boolean }

/** An older change is not news: it comes from a sync or an import. */
const newsMs = dayMs
/** Changes a few minutes apart may be reported out of order. The earlier one also went live, so it is announced. */
const overtakenMs = 10 * minuteMs

/**
 * A change is an entry that went live, on the live branch if there is one, after another commit. Returns the entries whose
 * `is_change` is wrong, only those of `decided` if it is given: what was live before the others is not among the entries.
 */
export function findWrongChanges<Entry extends PlacedEntry>(
  entries: Entry[],
  liveBranch: string | null,
  decided?: ReadonlySet<number>,
): Entry[] {
  let liveCommit: string | undefined
  return entries.toSorted(comparePlaces).filter((entry) => {
    const isLive = hasLiveAction(entry) && (liveBranch === null || entry.branch_name === liveBranch)
    const commit = commitKey(entry.commit_sha)
    const isChange = isLive && commit !== liveCommit
    if (isLive) liveCommit = commit
    return entry.is_change !== isChange && (decided?.has(entry.id) ?? true)
  })
}

/** Finds the earlier entry of the same commit that stands for a change now, instead of `lost`. */
export const findSuccessor = (entries: PlacedEntry[], lost: PlacedEntry): PlacedEntry | undefined =>
  entries
    .filter((one) => one.is_change && commitKey(one.commit_sha) === commitKey(lost.commit_sha))
    .filter((one) => comparePlaces(one, lost) < 0)
    .sort(comparePlaces)
    .at(-1)

/** Of the entries that were added to a history, finds the change to announce. `newest` is the newest change of all. */
export function findNews<Entry extends PlacedEntry>(added: Entry[], newest: number, now: Date): Entry | undefined {
  const last = added
    .filter((entry) => entry.is_change && !entry.isTakenOver)
    .sort(comparePlaces)
    .at(-1)
  if (!last) return undefined
  const ageMs = now.getTime() - last.created_at.getTime()
  return ageMs <= newsMs && (last.id === newest || ageMs <= overtakenMs) ? last : undefined
}
