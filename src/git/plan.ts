// Decides from a clone and the links of prompts what a sync has to do. Writes nothing.

import type { PromptEntry } from '../history/record.ts'
import { requireText } from '../lib/texts.ts'
import { parsePromptFile } from '../prompts/link.ts'
import { listArrivals, timeArrivals } from './arrivals.ts'
import { type Commit, readCommits } from './commits.ts'
import { entriesOf } from './entries.ts'
import { readChangedFiles } from './files.ts'
import { fitBranch } from './fit.ts'
import { findFates, followFiles } from './follow.ts'
import { compileGlob, nameOfPath } from './glob.ts'
import { keepOwnChanges } from './merge_changes.ts'
import { decode, encode, type Git } from './program.ts'
import { findHost, interpretForHost, listPromptCommits } from './prompt_commits.ts'
import { pathText, type Repository } from './repository.ts'
import type { LinkedFile } from './target.ts'

/** A prompt whose history is read. */
export type SyncedPrompt = {
  /** Null for a prompt that is to be made. */
  id: string | null
  /** Its name, if it is to be made. */
  name: string
  /** The path of its file on the branch, or where it was last. */
  path: string
  /** The path that it is linked to, if its file has been renamed since. */
  movedFrom: string | null
  /** Why its file is not on the branch; null for one that is. */
  missing: string | null
}

export type Plan = {
  prompts: SyncedPrompt[]
  /** Entries for the prompts, which are known by their positions, oldest first. */
  entries: PromptEntry[]
  /** The hashes of all commits of the branch. */
  commits: Set<string>
  /** When the newest commit of the branch arrived there. */
  lastArrivalAt: Date
}

type Options = {
  /** Files that match get a prompt; null for none. */
  createGlob: string | null
  now: Date
  onProgress(done: number, noun: string, share: number | null): void
}

export async function planSync(
  git: Git,
  repository: Repository,
  linked: LinkedFile[],
  { createGlob, now, onProgress }: Options,
): Promise<Plan> {
  if (linked.length === 0 && createGlob === null) {
    throw new Error(
      `No prompt is linked to a file of ${repository.fullName}. Link them (prompts link), or make a prompt for each ` +
        "file of a pattern: --create 'prompts/**/*.md'",
    )
  }
  const read = await readCommits(git, repository.tip, (count) => onProgress(count, 'commits read', null))
  const host = findHost(read, repository.webUrl)
  const commits = interpretForHost(read, host)
  const arrivals = listArrivals(commits, isOwnPullOf(repository))
  const files = await readChangedFiles(git, commits, arrivals, (count) =>
    onProgress(count, 'commits compared', count / arrivals.length),
  )

  const missing = linked.filter(({ path }) => !repository.tree.has(encode(path)))
  const fates = findFates(
    arrivals,
    files,
    missing.map(({ path }) => encode(path)),
  )
  const taken = new Set(linked.map(({ path }) => path))
  const prompts = linked.map((prompt): SyncedPrompt => {
    const known = { id: prompt.id, name: '', path: prompt.path, movedFrom: null, missing: null }
    const fate = fates[missing.indexOf(prompt)]
    if (!fate) return known
    if (fate.is !== 'renamed') return { ...known, missing: whyMissing(repository, prompt.path, fate.is) }
    const path = pathText(fate.to)
    if (path === undefined) return { ...known, missing: `was renamed to ${decode(fate.to)}, which is not UTF-8` }
    if (!repository.tree.has(fate.to)) return { ...known, missing: 'was removed' }
    if (taken.has(path)) return { ...known, missing: `was renamed to ${path}, which another prompt is linked to` }
    taken.add(path)
    return { ...known, path, movedFrom: prompt.path }
  })
  if (createGlob !== null) prompts.push(...listNew(repository, createGlob, taken))
  if (prompts.length === 0) {
    throw new Error(`No file on ${repository.branch} matches ${createGlob}, and no prompt is linked.`)
  }

  const paths = prompts.map(({ path }) => encode(path))
  const times = timeArrivals(commits, arrivals, now)
  const promptsOf = followFiles(commits, arrivals, files, paths)
  await keepOwnChanges(git, commits, arrivals, files, (arrival) => promptsOf(arrival).length > 0)
  const touched = arrivals.map((_, arrival) => promptsOf(arrival))
  const promptCommits = listPromptCommits({ commits, arrivals, times, host, webUrl: repository.webUrl }, touched)
  if (repository.webUrl === null && promptCommits.some(({ merge }) => merge !== null)) {
    throw new Error(
      'The history has merges of pull requests, and their addresses are not known. Say where the repository is shown: ' +
        `--repository https://HOST/${repository.fullName}`,
    )
  }
  const lastArrivalAt = [...times.values()].at(-1) ?? now
  const entries = entriesOf(fitBranch(repository.branch), promptCommits)
  return { prompts, entries, commits: new Set(commits.map(({ sha }) => sha)), lastArrivalAt }
}

function whyMissing({ tree }: Repository, path: string, fate: 'removed' | 'unknown'): string {
  if (fate === 'removed') return 'was removed'
  const folders = encode(path)
    .split('/')
    .map((_, depth, parts) => parts.slice(0, depth).join('/'))
  const submodule = folders.find((folder) => tree.get(folder) === 'submodule')
  return submodule ? `is in the submodule ${decode(submodule)}, a repository of its own` : 'was never on the branch'
}

/** Throws for a file that no prompt can be linked to. */
function listNew({ fullName, tree }: Repository, glob: string, taken: Set<string>): SyncedPrompt[] {
  const matches = compileGlob(glob)
  const paths = [...tree].flatMap(([bytes, kind]) => (kind === 'file' ? (pathText(bytes) ?? []) : []))
  return paths
    .filter((path) => !taken.has(path) && matches(path))
    .map((path) => {
      parsePromptFile({ repository: fullName, path })
      return { id: null, name: requireText('name', nameOfPath(glob, path)), path, movedFrom: null, missing: null }
    })
}

/** Whether a merge is that of a `git pull` of the branch into a clone of it. */
const isOwnPullOf =
  ({ branch, fullName }: Repository) =>
  ({ meaning }: Commit): boolean => {
    if (meaning.kind !== 'branch') return false
    if (meaning.branch === `origin/${branch}`) return true
    const from = meaning.from?.toLowerCase().replace(/\.git$/, '') ?? ''
    return meaning.branch === branch && (from.endsWith(`/${fullName}`) || from.endsWith(`:${fullName}`))
  }
