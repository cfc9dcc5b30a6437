// Decides from the graph of commits alone what reached a branch, in which order and at which time.
import type { Commit } from './commits.ts'
import { isPullRequest } from './messages.ts'

/** A commit that reached the branch. */
export type Arrival = {
  commit: number
  /** What the commit is compared with; null for the first commit of all, and for a merge that is looked through. */
  parent: number | null
  /** The commit of the branch's own line with which it arrived: itself, or a merge. */
  via: number
  /** The commit of the pull request's merge by which it arrived, or which it is. */
  merge: number | null
}

/** Whether an arrival is a merge that brings its commits one by one. */
export const isLookedThrough = (commits: Commit[], { commit, parent }: Arrival): boolean =>
  parent === null && (commits[commit] as Commit).parents.length > 1

/** Whether a merge pulled the branch itself into a clone of it, so that the branch's own line is the second parent's. */
type IsOwnPull = (commit: Commit) => boolean

/**
 * Lists what reached a branch, oldest first. The branch's own line is that of first parents. A merge of a pull request
 * brings the commits of its other side as its own. Any other merge is looked through: what it brings counts as if it had
 * been pushed by itself, and merges of pull requests among it as such; the merge follows, for what it changes itself.
 */
export function listArrivals(commits: Commit[], isOwnPull: IsOwnPull): Arrival[] {
  const isSeen = new Uint8Array(commits.length)
  const arrivals: Arrival[] = []
  const at = (position: number) => commits[position] as Commit

  function mainParentOf(commit: Commit): number | undefined {
    const [first, second] = commit.parents
    return second !== undefined && isOwnPull(commit) ? second : first
  }

  /** The line of a commit back to what has been seen, oldest first. */
  function lineOf(start: number): number[] {
    const line: number[] = []
    for (let next: number | undefined = start; next !== undefined && !isSeen[next]; next = mainParentOf(at(next))) {
      isSeen[next] = 1
      line.push(next)
    }
    return line.reverse()
  }

  /** Takes up the commits of a pull request that have not been seen, oldest first. */
  function takeUp(merge: number, sides: number[], via: number): void {
    const found: number[] = []
    const waiting = sides.filter((side) => !isSeen[side])
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if (isSeen[next]) continue
      isSeen[next] = 1
      found.push(next)
      waiting.push(...at(next).parents.filter((parent) => !isSeen[parent]))
    }
    for (const commit of found.sort((a, b) => b - a)) {
      const { parents } = at(commit)
      if (parents.length < 2) arrivals.push({ commit, parent: parents[0] ?? null, via, merge })
    }
  }

  // A stack instead of recursion, because merges can be nested as deep as there are commits.
  const stack = [{ line: lineOf(0), position: 0, via: null as number | null, isLookedThrough: false }]
  for (let frame = stack.at(-1); frame; frame = stack.at(-1)) {
    const commit = frame.line[frame.position]
    frame.position += 1
    if (commit === undefined) {
      stack.pop()
      continue
    }
    const { parents, meaning } = at(commit)
    const via = frame.via ?? commit
    if (frame.isLookedThrough) {
      arrivals.push({ commit, parent: null, via, merge: null })
      continue
    }
    const mainParent = mainParentOf(at(commit)) ?? null
    const sides = parents.filter((parent) => parent !== mainParent)
    const isMerge = isPullRequest(meaning)
    if (sides.length === 0 || isMerge) {
      takeUp(commit, sides, via)
      arrivals.push({ commit, parent: mainParent, via, merge: isMerge ? commit : null })
    } else {
      stack.push({ line: [commit], position: 0, via, isLookedThrough: true })
      for (const side of sides.reverse()) stack.push({ line: lineOf(side), position: 0, via, isLookedThrough: false })
    }
  }
  return arrivals
}

/**
 * When each commit of the branch's own line reached the branch: by the clock of its committer, unless that contradicts the
 * others. Commits follow each other, so the times do: the fewest possible that do not are taken for wrong, and so is any
 * that is later than now. In their place stands the time of the commit before, or for the first ones of the one after.
 */
export function timeArrivals(commits: Commit[], arrivals: Arrival[], now: Date): Map<number, Date> {
  const line = [...new Set(arrivals.map(({ via }) => via))]
  const committed = line.map((commit) => (commits[commit] as Commit).time)
  const isRight = longestRise(committed.map((time) => (time > now.getTime() ? null : time)))
  let last = committed.find((_, position) => isRight[position]) ?? now.getTime()
  const times = new Map<number, Date>()
  for (const [position, commit] of line.entries()) {
    if (isRight[position]) last = committed[position] as number
    times.set(commit, new Date(last))
  }
  return times
}

/** Which values belong to the longest part that never falls. */
function longestRise(values: (number | null)[]): boolean[] {
  /** The position of the smallest value that ends a part of each length, and of the one before each. */
  const ends: number[] = []
  const before: (number | undefined)[] = []
  for (const [position, value] of values.entries()) {
    if (value === null) continue
    let [low, high] = [0, ends.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((values[ends[middle] as number] as number) <= value) low = middle + 1
      else high = middle
    }
    before[position] = ends[low - 1]
    ends[low] = position
  }
  const isPart = values.map(() => false)
  for (let position = ends.at(-1); position !== undefined; position = before[position]) isPart[position] = true
  return isPart
}
