import { type Arrival, isLookedThrough } from './arrivals.ts'
import type { Commit } from './commits.ts'
import { type ChangedFiles, renameLimit } from './files.ts'
import { type Git, splitAt } from './program.ts'

const fileHeader = 'diff --cc '
/** Longer than any line that is looked for. */
const maxLineLength = 64 * 1024

/**
 * Removes, in place, from the changes of merges that are looked through all but what was made in the merge itself, as to
 * resolve a conflict. A file that both sides have changed is like neither of them, though git may have put it together by
 * itself; a combined diff shows only what comes from no side. Merges that are not wanted are left without changes.
 */
export async function keepOwnChanges(
  git: Git,
  commits: Commit[],
  arrivals: Arrival[],
  { changes, pathAt }: ChangedFiles,
  isWanted: (index: number) => boolean,
): Promise<void> {
  const merges = new Map<string, number>()
  const own = new Map<number, Set<string>>()
  for (const [index, arrival] of arrivals.entries()) {
    if (!isLookedThrough(commits, arrival)) continue
    own.set(index, new Set())
    if (isWanted(index)) merges.set((commits[arrival.commit] as Commit).sha, index)
  }
  if (merges.size > 0) {
    let paths = new Set<string>()
    for await (const lines of splitAt('\n', readCombinedDiffs(git, [...merges.keys()]), maxLineLength)) {
      for (const line of lines) {
        // The lines of files begin with a sign for each parent, and so look like none of these.
        if (line.startsWith(fileHeader)) paths.add(unquote(line.slice(fileHeader.length)))
        else paths = own.get(merges.get(line) ?? -1) ?? paths
      }
    }
  }
  for (const [index, paths] of own) {
    changes[index] = (changes[index] ?? []).filter(({ path }) => paths.has(pathAt(path)))
  }
}

function readCombinedDiffs(git: Git, merges: string[]): AsyncIterable<Buffer> {
  const patches = ['--cc', '--patch', '--unified=0', '--no-ext-diff', '--no-textconv']
  const args = ['diff-tree', '--stdin', '-r', '-M', `-l${renameLimit}`, ...patches]
  return git.stream(['-c', 'core.quotePath=false', ...args], [`${merges.join('\n')}\n`])
}

/** Git puts a name with a quotation mark or a backslash in it between quotation marks. */
const unquote = (name: string): string => (name.startsWith('"') ? name.slice(1, -1).replace(/\\(.)/g, '$1') : name)
