import { type Arrival, isLookedThrough } from './arrivals.ts'
import type { Commit } from './commits.ts'
import { type Git, splitAt } from './program.ts'

/** A file that a commit changes. Paths are known by their positions in a list, as they repeat from commit to commit. */
type FileChange = {
  path: number
  /** What the file was called before; null unless it was renamed. */
  from: number | null
  isRemoved: boolean
}

export type ChangedFiles = {
  /** The changes of each arrival, in the same order. */
  changes: FileChange[][]
  /** The position of a path, as bytes; undefined for one that no commit changes. */
  find(path: string): number | undefined
  pathAt(position: number): string
}

/** Longer than any path that git writes. */
const maxPathLength = 64 * 1024
const sha = /^[0-9a-f]{40,64}$/
/** Beyond this many files added and removed at once, git looks only for renames that change nothing else. */
export const renameLimit = 1_000

/**
 * Reads which files the commits change, each against its parent, in one run of git. A merge that is looked through is
 * compared with all its parents in a second one: its changes are the files that are like none of them.
 */
export async function readChangedFiles(
  git: Git,
  commits: Commit[],
  arrivals: Arrival[],
  onProgress: (read: number) => void,
): Promise<ChangedFiles> {
  const positions = new Map<string, number>()
  const paths: string[] = []
  const indexes = new Map(arrivals.map(({ commit }, index) => [commits[commit]?.sha, index]))
  const changes: FileChange[][] = arrivals.map(() => noChanges)
  let read = 0

  function intern(path: string): number {
    const known = positions.get(path)
    if (known !== undefined) return known
    positions.set(path, paths.length)
    return paths.push(path) - 1
  }

  async function compare(options: string[], lines: Iterable<string>): Promise<void> {
    const output = git.stream(['diff-tree', '--stdin', '-r', '--root', '--name-status', '-z', ...options], lines)
    let current: FileChange[] = []
    // A commit, or a status and one path, or two for a rename.
    const expected: string[] = []
    let status = ''
    for await (const parts of splitAt('\0', output, maxPathLength)) {
      for (const part of parts) {
        if (status === '' && sha.test(part)) {
          current = []
          changes[indexes.get(part) as number] = current
          read += 1
        } else if (status === '') {
          status = part
        } else {
          expected.push(part)
          if (status.startsWith('R') && expected.length < 2) continue
          const path = intern(expected.at(-1) as string)
          const from = status.startsWith('R') ? intern(expected[0] as string) : null
          // The status of a merge has a letter for each parent.
          current.push({ path, from, isRemoved: /^D+$/.test(status) })
          expected.length = 0
          status = ''
        }
      }
      onProgress(read)
    }
  }

  const isMerge = (arrival: Arrival) => isLookedThrough(commits, arrival)
  await compare(
    ['-M', `-l${renameLimit}`],
    comparisons(commits, arrivals, (arrival) => !isMerge(arrival)),
  )
  // Without renames git walks all trees at once, and leaves out what is like one of them.
  await compare(['-c', '--no-renames'], comparisons(commits, arrivals, isMerge))
  return { changes, find: (path) => positions.get(path), pathAt: (position) => paths[position] as string }
}

const noChanges: FileChange[] = []

/** A line for each arrival, gathered to larger pieces: the commit, and of a merge the parent to compare it with. */
function* comparisons(
  commits: Commit[],
  arrivals: Arrival[],
  isWanted: (arrival: Arrival) => boolean,
): Iterable<string> {
  let text = ''
  for (const arrival of arrivals) {
    if (!isWanted(arrival)) continue
    const { commit, parent } = arrival
    const { sha, parents } = commits[commit] as Commit
    const against = parents.length > 1 && parent !== null ? ` ${commits[parent]?.sha}` : ''
    text += `${sha}${against}\n`
    if (text.length > 64 * 1024) {
      yield text
      text = ''
    }
  }
  yield text
}
