import { type BranchCommit, isFlattenedMerge } from './branch_commits.ts'
import type { Commit } from './commits.ts'
import { fullSha, type Git, splitAt } from './program.ts'

/** `from` is the previous path of a renamed file. Paths are strings with one character per byte. */
type FileChange = { path: string; from: string | null; isRemoved: boolean }

export type ChangedFiles = Map<Commit, FileChange[]>

/** If a commit adds and removes more files than this, git finds only exact renames. */
const renameLimit = 1_000

/** Reads which files each commit changes against its parent; a flattened merge, against every parent. */
export async function readChangedFiles(git: Git, branchCommits: BranchCommit[], onProgress: (read: number) => void) {
  const commits = new Map(branchCommits.map(({ commit }) => [commit.sha, commit]))
  const changes: ChangedFiles = new Map()
  // One string for each path, because paths repeat from commit to commit.
  const paths = new Map<string, string>()

  function intern(path: string): string {
    const known = paths.get(path)
    if (known === undefined) paths.set(path, path)
    return known ?? path
  }

  async function compare(options: string[], compared: BranchCommit[]): Promise<void> {
    const args = ['diff-tree', '--stdin', '-r', '--root', '--name-status', '-z', ...options]
    let current: FileChange[] = []
    let status = ''
    let from: string | null = null
    for await (const parts of splitAt('\0', git.stream(args, compared.map(lineOf).join('')))) {
      for (const part of parts) {
        // The output is a commit, then a status and one path for each file, or two paths for a rename.
        if (status === '' && fullSha.test(part)) {
          current = []
          changes.set(commits.get(part) as Commit, current)
        } else if (status === '') {
          status = part
        } else if (status.startsWith('R') && from === null) {
          from = intern(part)
        } else {
          // The status of a merge has a letter for each parent.
          current.push({ path: intern(part), from, isRemoved: /^D+$/.test(status) })
          status = ''
          from = null
        }
      }
      onProgress(changes.size)
    }
  }

  await compare(
    ['-M', `-l${renameLimit}`],
    branchCommits.filter((one) => !isFlattenedMerge(one)),
  )
  // Without renames git walks all trees together, and leaves out files that equal one of the parents.
  await compare(['-c', '--no-renames'], branchCommits.filter(isFlattenedMerge))
  return changes
}

/** The commit, and for a merge the parent to compare it with. */
const lineOf = ({ commit, parent }: BranchCommit): string =>
  commit.parents.length > 1 && parent ? `${commit.sha} ${parent.sha}\n` : `${commit.sha}\n`

const fileHeader = 'diff --cc '

/** Reads which files were edited in merge commits: a combined diff shows only what comes from no parent. */
export async function readFilesEditedInMerges(git: Git, merges: Commit[]): Promise<Map<Commit, Set<string>>> {
  const edited = new Map(merges.map((merge) => [merge, new Set<string>()]))
  if (merges.length === 0) return edited
  const bySha = new Map(merges.map((merge) => [merge.sha, merge]))
  const patches = ['--cc', '--patch', '--unified=0', '--no-ext-diff', '--no-textconv']
  const args = ['-c', 'core.quotePath=false', 'diff-tree', '--stdin', '-r', '-M', `-l${renameLimit}`, ...patches]
  const output = git.stream(args, `${merges.map((merge) => merge.sha).join('\n')}\n`)
  let paths = new Set<string>()
  for await (const lines of splitAt('\n', output)) {
    for (const line of lines) {
      // Lines of file contents begin with a sign for each parent, so they look like neither of these.
      const merge = bySha.get(line)
      if (merge) paths = edited.get(merge) as Set<string>
      else if (line.startsWith(fileHeader)) paths.add(unquote(line.slice(fileHeader.length)))
    }
  }
  return edited
}

/** Git quotes a name that contains a quotation mark or a backslash. */
const unquote = (name: string): string => (name.startsWith('"') ? name.slice(1, -1).replace(/\\(.)/g, '$1') : name)
