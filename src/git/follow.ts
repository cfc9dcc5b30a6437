// Decides which commits change which prompt, through all names that its file has had. Reads and writes nothing.
import type { Arrival } from './arrivals.ts'
import type { Commit } from './commits.ts'
import type { ChangedFiles } from './files.ts'

/** What became of a file that is not on the branch any more. */
type Fate = { is: 'renamed'; to: string } | { is: 'removed' } | { is: 'unknown' }

/** A time during which a prompt had a name: known to the commits that know a rename to it, and none from it. */
type Span = { prompt: number; since: number[]; until: number | null }

type Rename = { commit: number; from: number }

/**
 * Finds the prompts that an arrival changes, by the position of the arrival. A prompt is given by the path of its file now,
 * and known by its position.
 */
export function followFiles(
  commits: Commit[],
  arrivals: Arrival[],
  files: ChangedFiles,
  paths: string[],
): (arrival: number) => number[] {
  const isSameOrDescendant = createDescendantTest(commits)
  const spans = findSpans(listRenames(arrivals, files), files, paths, isSameOrDescendant)
  return (arrival) => {
    const { commit } = arrivals[arrival] as Arrival
    const changed = (files.changes[arrival] ?? []).flatMap(({ path }) => {
      const span = spans.get(path)?.find(({ since, until }) => {
        const isOver = until !== null && isSameOrDescendant(commit, until)
        return !isOver && (since.length === 0 || since.some((rename) => isSameOrDescendant(commit, rename)))
      })
      return span ? span.prompt : []
    })
    return changed.length > 1 ? [...new Set(changed)] : changed
  }
}

/** Renames by the name that they give. The merge of a pull request repeats those that its commits have made. */
function listRenames(arrivals: Arrival[], { changes }: ChangedFiles): Map<number, Rename[]> {
  const renames = new Map<number, Rename[]>()
  const isMade = new Set<string>()
  for (const [index, { commit, merge }] of arrivals.entries()) {
    for (const { path, from } of changes[index] ?? []) {
      if (from === null || (merge === commit && isMade.has(`${merge} ${path}`))) continue
      isMade.add(`${merge} ${path}`)
      renames.set(path, [...(renames.get(path) ?? []), { commit, from }])
    }
  }
  return renames
}

/** The spans of each name, those that have ended first: before that end, the name was not that of a later file. */
function findSpans(
  renames: Map<number, Rename[]>,
  files: ChangedFiles,
  paths: string[],
  isSameOrDescendant: DescendantTest,
): Map<number, Span[]> {
  const spans = new Map<number, Span[]>()
  const isFound = new Set<string>()
  const waiting = paths.flatMap((path, prompt) => ({ name: files.find(path), prompt, until: null as number | null }))
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { name, prompt, until } = next
    const key = `${name} ${prompt} ${until}`
    if (name === undefined || isFound.has(key)) continue
    isFound.add(key)
    const before = (renames.get(name) ?? []).filter(
      ({ commit }) => until === null || !isSameOrDescendant(commit, until),
    )
    // Of renames that follow each other the last counts; two sides of a merge may have made the same one.
    const last = before.filter(
      ({ commit }) => !before.some((other) => other.commit !== commit && isSameOrDescendant(other.commit, commit)),
    )
    const span = { prompt, since: last.map(({ commit }) => commit), until }
    const known = spans.get(name) ?? []
    spans.set(name, until === null ? [...known, span] : [span, ...known])
    waiting.push(...last.map(({ commit, from }) => ({ name: from, prompt, until: commit })))
  }
  return spans
}

/** Whether a commit is another, or has it among its ancestors. */
type DescendantTest = (commit: number, other: number) => boolean

function createDescendantTest(commits: Commit[]): DescendantTest {
  const cache = new Map<number, Uint8Array>()
  return (commit, other) => {
    // No parent comes before a child.
    if (commit > other) return false
    const descendants = cache.get(other) ?? descendantsOf(commits, other)
    cache.set(other, descendants)
    return descendants[commit] === 1
  }
}

function descendantsOf(commits: Commit[], ancestor: number): Uint8Array {
  const isDescendant = new Uint8Array(commits.length)
  isDescendant[ancestor] = 1
  for (let position = ancestor - 1; position >= 0; position--) {
    if (commits[position]?.parents.some((parent) => isDescendant[parent])) isDescendant[position] = 1
  }
  return isDescendant
}

/** What became of files that are not on the branch any more, by the last commit that removes or renames each. */
export function findFates(arrivals: Arrival[], files: ChangedFiles, missing: string[]): Fate[] {
  /** Where the file of a name is now; null for one that was removed. */
  const now = new Map<number, number | null>()
  for (let index = arrivals.length - 1; index >= 0; index--) {
    const { commit, merge } = arrivals[index] as Arrival
    // What a pull request changes as a whole is the entry of its merge.
    if (merge !== null && merge !== commit) continue
    for (const { path, from, isRemoved } of files.changes[index] ?? []) {
      if (isRemoved && !now.has(path)) now.set(path, null)
      if (from !== null && !now.has(from)) now.set(from, now.has(path) ? (now.get(path) as number | null) : path)
    }
  }
  return missing.map((path) => {
    const position = files.find(path)
    const to = position === undefined ? undefined : now.get(position)
    if (to === undefined) return { is: 'unknown' }
    return to === null ? { is: 'removed' } : { is: 'renamed', to: files.pathAt(to) }
  })
}
