// Reads commits, the files that they change, and the texts of files, as git writes them.
import { isStorableText, maxTextBytes } from '../history/schema.ts'
import type { HostKind } from '../lib/repository_links.ts'
import {
  findHost,
  interpretForHost,
  type MessageMeaning,
  type Person,
  parseMessage,
  sanitizeTitle,
  titleOf,
} from './entries.ts'
import { decode, fullSha, type Git, splitAt } from './program.ts'

export type Commit = {
  sha: string
  /** In the list of all commits, in which every commit comes before its parents. */
  position: number
  parents: Commit[]
  /** The committer's clock, in milliseconds. */
  time: number
  author: Person
  committer: Person
  meaning: MessageMeaning
}

/** A commit that landed on the branch. */
export type BranchCommit = {
  commit: Commit
  /** The commit that it is compared with. Null for a root commit and for a flattened merge. */
  parent: Commit | null
  /** The commit of the branch's first-parent line that brought it: itself or a merge. */
  landedWith: Commit
  /** The merge commit of the pull request that brought it, or that it is. */
  merge: Commit | null
}

/** A flattened merge brings its commits one by one, as if each had been pushed directly. */
export const isFlattenedMerge = ({ commit, parent }: BranchCommit): boolean =>
  parent === null && commit.parents.length > 1

const fields = ['%P', '%ct', '%aN', '%aE', '%cN', '%cE', '%B']
type FieldValues = [string, string, string, string, string, string, string]

/** Reads every commit reachable from the tip, itself first, and finds the host. Names follow the branch's mailmap. */
export async function readCommits(
  git: Git,
  { gitDir, tip, webUrl }: { gitDir: string; tip: string; webUrl: string },
  onProgress: (read: number) => void,
): Promise<{ commits: Commit[]; host: HostKind | null }> {
  const format = `--format=${fields.join('%x00')}%x00`
  // Run in the git folder, because git would also read a mailmap in the work tree, whatever kind of file it is. With
  // --bare, because git may be configured not to look for a repository there (safe.bareRepository).
  const mailmap = ['-C', gitDir, '--bare', '-c', `mailmap.blob=${tip}:.mailmap`]
  const output = git.stream([...mailmap, 'rev-list', '--topo-order', '--encoding=UTF-8', format, tip])
  const personOf = createInterner()
  const commits: Commit[] = []
  const parentShas: string[][] = []
  let record: string[] = []
  for await (const parts of splitAt('\0', output)) {
    for (const part of parts) {
      record.push(part)
      if (record.length < fields.length) continue
      const [head, time, authorName, authorEmail, committerName, committerEmail, message] = record as FieldValues
      record = []
      // rev-list writes "commit SHA" on a separate line before each.
      const [, sha = '', parents = ''] = /commit ([0-9a-f]+)\n(.*)$/s.exec(head) ?? []
      const people = { author: personOf(authorName, authorEmail), committer: personOf(committerName, committerEmail) }
      const common = { time: Number(time) * 1_000, ...people, meaning: parseMessage(message) }
      commits.push({ sha, position: commits.length, parents: [], ...common })
      parentShas.push(parents.split(' '))
    }
    onProgress(commits.length)
  }
  const host = findHost(commits, webUrl)
  const bySha = new Map(commits.map((commit) => [commit.sha, commit]))
  for (const commit of commits) {
    commit.meaning = interpretForHost(commit.meaning, host)
    commit.parents = (parentShas[commit.position] ?? []).flatMap((sha) => bySha.get(sha) ?? [])
  }
  return { commits, host }
}

/** Reads the titles of some commits. Those of all commits would need too much memory. */
export async function readTitles(git: Git, commits: Commit[]): Promise<Map<Commit, string | null>> {
  const titles = new Map<Commit, string | null>()
  if (commits.length === 0) return titles
  const bySha = new Map(commits.map((commit) => [commit.sha, commit]))
  const args = ['rev-list', '--no-walk=unsorted', '--stdin', '--encoding=UTF-8', '--format=%B%x00']
  const output = git.stream(args, [...bySha.keys()].map((sha) => `${sha}\n`).join(''))
  for await (const parts of splitAt('\0', output)) {
    for (const part of parts) {
      const [, sha = '', message = ''] = /^\n?commit ([0-9a-f]+)\n(.*)$/s.exec(part) ?? []
      const commit = bySha.get(sha) as Commit
      titles.set(commit, sanitizeTitle(decode(titleOf(message, commit.meaning))))
    }
  }
  return titles
}

/** Returns the same object for the same person: there are many commits and few people. */
function createInterner(): (name: string, email: string) => Person {
  const known = new Map<string, Person>()
  return (name, email) => {
    const key = `${name}\0${email}`
    // Git leaves the placeholders of a line that it cannot parse.
    const isBroken = /^%[ac]N$/.test(name)
    const person =
      known.get(key) ??
      (isBroken ? { name: 'unknown', email: 'unknown' } : { name: decode(name), email: decode(email) })
    known.set(key, person)
    return person
  }
}

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

/** A file at a commit. The path is text; null for a file that the commit removes. */
type FileVersion = { commitSha: string; path: string | null }

/** The text of a file; or why it has none, which is null for a file that is not there. */
type FileText = { text: string } | { problem: string | null }

const objectLine = /^([0-9a-f]{40,64}) blob (\d+)$/

/** Reads the texts of files. Those that are too large are not read, so that the others fit into memory. */
export async function readTexts(git: Git, files: FileVersion[]): Promise<FileText[]> {
  // git reads one name per line. An empty one is an object that is not there.
  const names = files.map(({ commitSha, path }) => (path?.includes('\n') === false ? `${commitSha}:${path}` : ''))
  const lines = (await readAll(git, ['cat-file', '--batch-check'], names)).toString('latin1').split('\n')
  const blobs = files.map((_, index) => {
    const [, sha = '', size = ''] = objectLine.exec(lines[index] ?? '') ?? []
    return sha === '' ? null : { sha, isSmall: Number(size) <= maxTextBytes }
  })
  const small = [...new Set(blobs.flatMap((blob) => (blob?.isSmall ? blob.sha : [])))]
  const contents = await readAll(git, ['cat-file', '--batch'], small)
  const texts = new Map<string, FileText>()
  for (let at = 0; at < contents.length; ) {
    const start = contents.indexOf('\n', at) + 1
    const [, sha = '', size = ''] = objectLine.exec(contents.toString('latin1', at, start - 1)) ?? []
    const end = start + Number(size)
    texts.set(sha, decodeText(contents.subarray(start, end)))
    at = end + 1
  }
  return blobs.map((blob) => {
    if (!blob) return { problem: null }
    return texts.get(blob.sha) ?? { problem: `is larger than ${maxTextBytes / 1024} KiB` }
  })
}

const readAll = async (git: Git, args: string[], lines: string[]): Promise<Buffer> =>
  Buffer.concat(lines.length > 0 ? await Array.fromAsync(git.stream(args, `${lines.join('\n')}\n`)) : [])

/** JSON writes a control character as six: the text and its entry must fit into a request of 1 MiB. */
const maxJsonBytes = 900_000

const fitsRequest = (text: string) => Buffer.byteLength(JSON.stringify(text)) <= maxJsonBytes

function decodeText(bytes: Uint8Array): FileText {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return isStorableText(text) && fitsRequest(text) ? { text } : { problem: 'is binary' }
  } catch {
    return { problem: 'is not UTF-8' }
  }
}
