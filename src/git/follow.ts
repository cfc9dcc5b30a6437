// Decides which prompt a path belonged to at a commit, through all names that the prompt's file has had.
import type { BranchCommit, ChangedFiles, Commit } from './read.ts'

/** The path is the prompt's in commits that contain a rename to it (`since`), but not the rename away (`until`). */
type Span<P> = { prompt: P; since: Commit[]; until: Commit | null }

type Rename = { commit: Commit; from: string; path: string }

/** Finds the prompt whose file had a path at a commit. `prompts` maps the path of each file today to its prompt. */
export function followFiles<P>(
  commits: Commit[],
  branchCommits: BranchCommit[],
  changes: ChangedFiles,
  prompts: Map<string, P>,
): (commit: Commit, path: string) => P | undefined {
  const contains = createAncestryTest(commits)
  const spans = findSpans(listRenames(branchCommits, changes), prompts, contains)
  return (commit, path) =>
    spans.get(path)?.find(({ since, until }) => {
      if (until && contains(commit, until)) return false
      return since.length === 0 || since.some((rename) => contains(commit, rename))
    })?.prompt
}

/** Renames, newest first. The merge of a pull request repeats the renames of its commits. */
function listRenames(branchCommits: BranchCommit[], changes: ChangedFiles): Rename[] {
  const renames: Rename[] = []
  const listed = new Set<string>()
  for (const { commit, merge } of branchCommits) {
    for (const { path, from } of changes.get(commit) ?? []) {
      const key = `${merge?.sha} ${path}`
      if (from === null || (merge === commit && listed.has(key))) continue
      listed.add(key)
      renames.push({ commit, from, path })
    }
  }
  return renames.sort((a, b) => a.commit.position - b.commit.position)
}

/** Spans per path, earliest end first: the first match is the owner at that commit. */
function findSpans<P>(renames: Rename[], prompts: Map<string, P>, contains: AncestryTest) {
  const spans = new Map(
    [...prompts].map(([path, prompt]): [string, Span<P>[]] => [path, [{ prompt, since: [], until: null }]]),
  )
  for (const { commit, from, path } of renames) {
    // Only the last rename of a chain counts, but two sides of a merge may contain the same rename.
    const span = spans.get(path)?.find(({ since, until }) => {
      return !(until && contains(commit, until)) && !since.some((later) => contains(later, commit))
    })
    if (!span) continue
    span.since.push(commit)
    spans.set(from, [{ prompt: span.prompt, since: [], until: commit }, ...(spans.get(from) ?? [])])
  }
  return spans
}

/** Whether a commit is the other one or its descendant. */
type AncestryTest = (commit: Commit, other: Commit) => boolean

/**
 * If the other commit is on the first-parent line of the tip, one number per commit answers it. Else it needs a walk over
 * all commits, whose result is cached.
 */
function createAncestryTest(commits: Commit[]): AncestryTest {
  const isOnMain = new Uint8Array(commits.length)
  for (let next = commits[0]; next; next = next.parents[0]) isOnMain[next.position] = 1
  /** For each commit, the position of the newest commit of that line that it is or descends from. */
  const newestOnMain = new Int32Array(commits.length)
  for (const { position, parents } of commits.toReversed()) {
    const inherited = parents.map((parent) => newestOnMain[parent.position] as number)
    newestOnMain[position] = isOnMain[position] ? position : Math.min(commits.length, ...inherited)
  }
  const cache = new Map<Commit, Uint8Array>()
  return (commit, other) => {
    if (commit.position > other.position) return false
    if (isOnMain[other.position]) return (newestOnMain[commit.position] as number) <= other.position
    const descendants = cache.get(other) ?? findDescendants(commits, other)
    cache.set(other, descendants)
    return descendants[commit.position] === 1
  }
}

/** A byte for each commit, by its position: 1 for the ancestor and its descendants. */
function findDescendants(commits: Commit[], ancestor: Commit): Uint8Array {
  const isDescendant = new Uint8Array(commits.length)
  isDescendant[ancestor.position] = 1
  for (let position = ancestor.position - 1; position >= 0; position--) {
    if (commits[position]?.parents.some((parent) => isDescendant[parent.position])) isDescendant[position] = 1
  }
  return isDescendant
}

/** Maps each path that a file has left to the last path of that file. A removed file left its path, too. */
export function trackMissing(branchCommits: BranchCommit[], changes: ChangedFiles): Map<string, string> {
  const last = new Map<string, string>()
  /** The same for the file that has the path before the commit: several may have left it. */
  const next = new Map<string, string>()
  const newestFirst = branchCommits.toReversed()
  const movedBy = new Map<Commit, Map<string, string>>()
  for (const { commit, merge } of newestFirst) {
    if (!merge || merge === commit) continue
    const moved = movedBy.get(merge) ?? new Map<string, string>()
    movedBy.set(merge, moved)
    for (const { path, from } of changes.get(commit) ?? []) if (from !== null) moved.set(from, moved.get(path) ?? path)
  }
  for (const { commit, merge } of newestFirst) {
    // The merge of a pull request shows what all its commits change together.
    if (merge && merge !== commit) continue
    const files = changes.get(commit) ?? []
    const present = new Set(files.flatMap(({ path, isRemoved }) => (isRemoved ? [] : path)))
    for (const { path, from, isRemoved } of files) {
      const left = isRemoved ? path : from
      if (left === null) continue
      // If a commit moves a file and another one rewrites it, their merge shows it as removed.
      const moved = isRemoved ? (movedBy.get(commit)?.get(path) ?? path) : path
      const to = present.has(moved) ? moved : path
      const end = next.get(to) ?? to
      next.set(left, end)
      if (!last.has(left)) last.set(left, end)
    }
  }
  return last
}
