// When each change of a prompt was live, and which came before it.
import { dayMs } from '../lib/times.ts'
import { wanderDays } from './wander.ts'

/** All changes of a prompt by time: when each went live, in milliseconds since 1970, and its commit in lower case. */
export type Timeline = [id: number, liveAt: number, commit: string][]

/** A change, from when it went live until the next change did. */
export type ChangeWindow = {
  id: number
  /** False for a change that was read only as one before another. */
  is_asked: boolean
  /** The changes before it that may be its base, or tell how the rate wanders without changes: the nearest first. */
  earlier_ids: number[]
  created_at: Date
  /** Null while it is live. */
  live_until: Date | null
  /** The commit in lower case. */
  commit_key: string
  /**
   * A rollback makes a commit live again, so the commit has several changes. A signal that names it belongs to the change
   * whose range contains it. The first range has no start (null), the last one no end.
   */
  named_from: Date | null
  named_until: Date | null
}

const maxEarlier = 10

/** The windows of the changes with these ids, and of those before each. */
export function windowsOf(timeline: Timeline, ids: number[]): ChangeWindow[] {
  const placesOf = Map.groupBy(timeline.keys(), (place) => (timeline[place] as Timeline[number])[2])
  const windowAt = (place: number): ChangeWindow => {
    const [id, liveAt, commit] = timeline[place] as Timeline[number]
    const untilOf = (next: Timeline[number] | undefined) => (next ? new Date(next[1]) : null)
    const isStillLive = (_: unknown, index: number) =>
      (timeline[place - index] as Timeline[number])[1] > liveAt - wanderDays * dayMs
    const earlier = timeline.slice(Math.max(place - maxEarlier, 0), place).reverse()
    const same = placesOf.get(commit) as number[]
    const next = same[same.indexOf(place) + 1] ?? timeline.length
    return {
      id,
      is_asked: ids.includes(id),
      earlier_ids: earlier.filter(isStillLive).map((one) => one[0]),
      created_at: new Date(liveAt),
      live_until: untilOf(timeline[place + 1]),
      commit_key: commit,
      named_from: same[0] === place ? null : new Date(liveAt),
      named_until: untilOf(timeline[next]),
    }
  }
  const places = new Map(timeline.map(([id], place) => [id, place]))
  const asked = ids.flatMap((id) => places.get(id) ?? []).map(windowAt)
  const others = new Set(asked.flatMap(({ earlier_ids }) => earlier_ids)).difference(new Set(ids))
  return [...asked, ...[...others].map((id) => windowAt(places.get(id) as number))]
}
