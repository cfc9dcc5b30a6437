// Decides from a clone and the links of prompts what a sync has to do. Writes nothing.

import type { PromptEntry } from '../history/record.ts'
import { splitRepository } from '../lib/repository_links.ts'
import { requireName } from '../lib/texts.ts'
import { parsePromptFile } from '../prompts/link.ts'
import { listBranchCommits, listLandingTimes, listPromptCommits } from './branch_commits.ts'
import type { LinkedFile } from './calls.ts'
import { entriesOf, sanitizeBranch } from './entries.ts'
import { followFiles, trackMissing } from './follow.ts'
import { compileGlob, nameOfPath } from './glob.ts'
import { decode, encode, type Git } from './program.ts'
import {
  type Commit,
  isFlattenedMerge,
  readChangedFiles,
  readCommits,
  readFilesEditedInMerges,
  readTitles,
} from './read.ts'
import { escapePath, pathText, type Repository } from './repository.ts'

/** A prompt whose history is read. The sync creates it if `id` is null, which needs its name, and then sets `id`. */
export type SyncedPrompt = {
  id: string | null
  name: string
  /** The path of its file on the branch, or its last one. */
  path: string
  /** The path that it is linked to, if its file was renamed since. */
  movedFrom: string | null
  /** Why its file is not on the branch; null if it is. */
  missing: string | null
}

/** A file that matches --create but gets no prompt. Its path is escaped. */
export type SkippedFile = { path: string; problem: string }

export type Plan = {
  prompts: SyncedPrompt[]
  skipped: SkippedFile[]
  /** Oldest first. */
  entries: PromptEntry<SyncedPrompt>[]
  /** The path that the file of an entry's prompt has after the change; null for a file that the change removes. */
  pathOf(entry: PromptEntry<SyncedPrompt>): string | null
  /** The SHAs of all commits that are reachable from the branch. */
  commits: Set<string>
  lastLandedAt: Date
}

export type PlanOptions = {
  /** Files that match one of these get a prompt, unless they match one of the others. */
  createGlobs: string[]
  excludeGlobs: string[]
  /** Files whose prompts were erased: they get one only if a pattern is their path. */
  erased?: string[]
  now: Date
  onProgress(done: number, noun: string, share: number | null): void
}

export async function planSync(
  git: Git,
  repository: Repository,
  linked: LinkedFile[],
  options: PlanOptions,
): Promise<Plan> {
  const { createGlobs, now, onProgress } = options
  if (linked.length === 0 && createGlobs.length === 0) {
    throw new Error(
      `No prompt is linked to a file of ${repository.name}. Link prompts (prompts link), or create one for each ` +
        "file that matches a pattern: --create 'prompts/**/*.md'",
    )
  }
  const { commits, host } = await readCommits(git, repository, (count) => onProgress(count, 'commits read', null))
  const branchCommits = listBranchCommits(commits[0] as Commit, isOwnPullOf(repository))
  const changes = await readChangedFiles(git, branchCommits, (count) =>
    onProgress(count, 'commits compared', count / branchCommits.length),
  )

  const prompts = findFiles(repository, linked, trackMissing(branchCommits, changes))
  const { created, skipped } = listNew(repository, options, [...linked, ...prompts])
  prompts.push(...created)
  const [first] = skipped
  if (prompts.length === 0 && first) throw new Error(`No prompt can be created: ${first.path} ${first.problem}`)

  const byPath = new Map(prompts.map((prompt) => [encode(prompt.path), prompt]))
  const promptAt = followFiles(commits, branchCommits, changes, byPath)
  function promptsIn(commit: Commit, isCounted = (_path: string) => true): SyncedPrompt[] {
    const files = (changes.get(commit) ?? []).filter(({ path }) => isCounted(path))
    const changed = files.map(({ path, isRemoved }) => (isRemoved ? undefined : promptAt(commit, path)))
    // A vacated path counts for the prompt that owns it later, unless the file that left belongs to another prompt.
    const left = files.map(({ path, from, isRemoved }) => {
      const gone = isRemoved ? path : from
      const [before, after] = [commit.parents[0], commit].map((at) => (at && gone ? promptAt(at, gone) : undefined))
      return before === after ? after : undefined
    })
    return [...new Set([...changed, ...left].filter((prompt) => prompt !== undefined))]
  }
  const merges = new Set(branchCommits.filter(isFlattenedMerge).map(({ commit }) => commit))
  const edited = await readFilesEditedInMerges(
    git,
    [...merges].filter((merge) => promptsIn(merge).length > 0),
  )
  const changed = new Map(
    branchCommits.map(({ commit }) => {
      const isCounted = merges.has(commit) ? (path: string) => edited.get(commit)?.has(path) === true : undefined
      return [commit, promptsIn(commit, isCounted)]
    }),
  )

  const times = listLandingTimes(branchCommits, now)
  const titles = await readTitles(
    git,
    commits.filter((commit) => (changed.get(commit) ?? []).length > 0),
  )
  const promptCommits = listPromptCommits({ branchCommits, changed, times, titles, host, webUrl: repository.webUrl })
  const entries = entriesOf(sanitizeBranch(repository.branch), promptCommits)
  const bySha = new Map(commits.map((commit) => [commit.sha, commit]))
  return {
    prompts,
    skipped,
    entries,
    pathOf({ prompt, entry }) {
      const commit = bySha.get(entry.commit_sha) as Commit
      const files = (changes.get(commit) ?? []).filter(
        (file) => !file.isRemoved && promptAt(commit, file.path) === prompt,
      )
      const last = files.at(-1)
      return last ? (pathText(last.path) ?? null) : null
    },
    commits: new Set(commits.map(({ sha }) => sha)),
    lastLandedAt: [...times.values()].at(-1) ?? now,
  }
}

function findFiles({ tree }: Repository, linked: LinkedFile[], lastPaths: Map<string, string>): SyncedPrompt[] {
  const taken = new Set(linked.map(({ path }) => path))
  return linked.map(({ id, path }): SyncedPrompt => {
    const known = { id, name: '', path, movedFrom: null, missing: null }
    if (tree.has(encode(path))) return known
    const last = lastPaths.get(encode(path))
    if (last === undefined) return { ...known, missing: explainUnknown(tree, path) }
    const to = pathText(last)
    const isRemoved = !tree.has(last)
    if (to === undefined || taken.has(to)) {
      const problem = to === undefined ? 'is not UTF-8' : 'another prompt is linked to'
      return { ...known, missing: isRemoved ? 'was removed' : `was renamed to ${decode(last)}, which ${problem}` }
    }
    taken.add(to)
    return isRemoved ? { ...known, path: to, missing: 'was removed' } : { ...known, path: to, movedFrom: path }
  })
}

function explainUnknown(tree: Repository['tree'], path: string): string {
  const folders = encode(path)
    .split('/')
    .map((_, depth, parts) => parts.slice(0, depth).join('/'))
  const submodule = folders.find((folder) => tree.get(folder) === 'submodule')
  return submodule ? `is in the submodule ${decode(submodule)}, a separate repository` : 'was never on the branch'
}

/** Lists the files that get a prompt, and those that match but cannot. Throws if no file matches a pattern. */
function listNew({ name, branch, tree }: Repository, options: PlanOptions, known: { path: string }[]) {
  const { createGlobs, excludeGlobs, erased } = options
  const taken = new Set(known.map(({ path }) => path))
  const isErased = new Set(erased?.filter((path) => !createGlobs.includes(path)))
  const wanted = createGlobs.map((glob) => ({ glob, matches: compileGlob(glob) }))
  const excluded = excludeGlobs.map(compileGlob)
  const unused = wanted.find(({ matches }) => !tree.keys().some((bytes) => matches(decode(bytes))))
  if (unused) {
    throw new Error(
      `No file on ${branch} matches ${unused.glob}. A pattern is a path from the root of the repository, in quotation marks.`,
    )
  }
  const created: SyncedPrompt[] = []
  const skipped: SkippedFile[] = []
  for (const [bytes, kind] of tree) {
    const text = decode(bytes)
    // A file has the name that the first pattern gives it.
    const glob = wanted.find(({ matches }) => matches(text))?.glob
    if (glob === undefined || excluded.some((matches) => matches(text))) continue
    const path = pathText(bytes)
    if (path !== undefined && taken.has(path)) continue
    const named = kind === 'file' ? nameFile(name, glob, path, isErased) : { problem: `is a ${kind}` }
    if ('problem' in named) skipped.push({ path: escapePath(bytes), problem: named.problem })
    else created.push({ id: null, ...named, movedFrom: null, missing: null })
  }
  return { created, skipped }
}

/** The name of the prompt that is linked to a path, or why there can be none. */
function nameFile(repository: string, glob: string, path: string | undefined, isErased: Set<string>) {
  if (path === undefined) return { problem: 'has a name that is not UTF-8' }
  if (isErased.has(path)) return { problem: `had a prompt that was erased; to create one: --create '${path}'` }
  try {
    parsePromptFile({ repository, path })
    return { name: requireName(nameOfPath(glob, path)), path }
  } catch {
    return { problem: 'has a name that no prompt can have' }
  }
}

/** Whether a merge commit comes from a `git pull` of the branch into a clone. */
const isOwnPullOf =
  ({ branch, name }: Repository) =>
  ({ meaning }: Commit): boolean => {
    if (meaning.kind !== 'branch') return false
    if (meaning.branch === `origin/${branch}`) return true
    const from = meaning.from?.toLowerCase().replace(/\.git$/, '') ?? ''
    const { path } = splitRepository(name)
    return meaning.branch === branch && (from.endsWith(`/${path}`) || from.endsWith(`:${path}`))
  }
