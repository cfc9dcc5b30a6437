import { type HistoryEntry, maxBatchEntries } from '../history/schema.ts'
import { sanitizeBranch } from './entries.ts'
import { type Plan, planSync, type SyncedPrompt } from './plan.ts'
import { encode, fullSha } from './program.ts'
import { escapePath, type Repository } from './repository.ts'
import { type PromptIds, recordEntries, type SyncOptions } from './sync_entries.ts'
import type { SyncTarget } from './target.ts'

export type SyncResult = Record<'commits' | 'prompts' | 'added' | 'changed' | 'known' | 'texts', number> & {
  /** The number of entries of unreachable commits; null when the key may not read histories. */
  unreachable: number | null
  /** From the paths of the files to the ids of their prompts. */
  map: Record<string, string>
}

/** How many histories are read concurrently. */
const concurrency = 8

/** Syncs histories from a branch. Checks all before the first change. Repeating it completes an interrupted sync. */
export async function syncRepository(options: SyncOptions): Promise<SyncResult> {
  const { git, repository, target, isDryRun, onProgress } = options
  const linked = await target.listLinked(repository.name)
  const plan = await withoutOldNames(options, await planSync(git, repository, linked, options))
  const { prompts, commits, lastLandedAt } = plan
  for (const file of plan.skipped) options.onChange({ change: 'skipped', prompt: null, ...file })

  const ids: PromptIds = new Map()
  for (const prompt of prompts) {
    ids.set(prompt, await createOrMovePrompt(options, repository.name, prompt))
    onProgress(ids.size, 'prompts', ids.size / prompts.length)
  }
  const counts = await recordEntries(options, ids, plan)

  const synced = prompts.flatMap((prompt) => {
    const id = ids.get(prompt)
    return id ? { id, path: prompt.path, isPresent: prompt.missing === null } : []
  })
  const seen_at = lastLandedAt.toISOString()
  for (let first = 0; first < synced.length && !isDryRun; first += maxBatchEntries) {
    const files = synced.slice(first, first + maxBatchEntries).map(({ id, isPresent }) => {
      return { prompt_id: id, state: isPresent ? ('present' as const) : ('removed' as const), seen_at }
    })
    await target.recordBatch({ entries: [], files, live_branch: sanitizeBranch(repository.branch) })
  }
  const unreachable = await reportUnreachable(options, plan)
  const map = Object.fromEntries(synced.flatMap(({ id, path, isPresent }) => (isPresent ? [[path, id]] : [])))
  return { commits: commits.size, prompts: prompts.length, ...counts, unreachable, map }
}

/** Creates a prompt or moves its link. Returns its id, or null if a dry run does not create it. */
async function createOrMovePrompt(
  options: SyncOptions,
  repository: string,
  prompt: SyncedPrompt,
): Promise<string | null> {
  const { target, isDryRun, onChange } = options
  const { id, name, path, movedFrom, missing } = prompt
  if (id === null) {
    const created = isDryRun ? null : await createOrFind(target, name, repository, path)
    onChange({ change: 'created', prompt: created, path, name })
    return created
  }
  if (movedFrom !== null) {
    const problem = isDryRun ? null : await target.moveLink(id, repository, path)
    onChange({ change: 'moved', prompt: id, path, from: movedFrom, problem })
  }
  if (missing !== null) onChange({ change: 'missing', prompt: id, path, problem: missing })
  return id
}

/** Another sync, or an earlier attempt whose response was lost, may have created it. */
async function createOrFind(target: SyncTarget, name: string, repository: string, path: string): Promise<string> {
  try {
    return await target.createPrompt(name, repository, path)
  } catch (error) {
    const found = (await target.listLinked(repository)).find((prompt) => prompt.path === path)
    if (!found) throw error
    return found.id
  }
}

/** Finds entries of the branch whose commits the clone does not have. */
function createUnreachableTest(repository: Repository, { commits }: Plan): (entry: HistoryEntry) => boolean {
  const branch = sanitizeBranch(repository.branch)
  return ({ action, branch_name, commit_sha }) => {
    const isOfBranch = branch_name === branch && (action === 'deployed' || action === 'pr_merged')
    // Clients may have recorded entries with other names for a commit.
    return isOfBranch && fullSha.test(commit_sha) && !commits.has(commit_sha)
  }
}

/** In a clone that is behind, a file without a prompt may be the old name of one that was renamed since: creates none. */
async function withoutOldNames({ target, repository }: SyncOptions, plan: Plan): Promise<Plan> {
  const created = plan.prompts.filter(({ id }) => id === null)
  const missing = plan.prompts.flatMap(({ id, missing }) => (id !== null && missing !== null ? id : []))
  const isUnreachable = createUnreachableTest(repository, plan)
  const isLater = (entry: HistoryEntry) => isUnreachable(entry) && new Date(entry.created_at) > plan.lastLandedAt
  for (const id of created.length > 0 ? missing : []) {
    if (!(await target.readHistory(id, 1))?.data.some(isLater)) continue
    const problem = 'may have been renamed: the clone is behind'
    return {
      ...plan,
      prompts: plan.prompts.filter((prompt) => prompt.id !== null),
      entries: plan.entries.filter(({ prompt }) => prompt.id !== null),
      skipped: [...plan.skipped, ...created.map(({ path }) => ({ path: escapePath(encode(path)), problem }))],
    }
  }
  return plan
}

/** Reports and counts entries of unreachable commits; null if the key may not read them. Records nothing. */
async function reportUnreachable(options: SyncOptions, plan: Plan): Promise<number | null> {
  const { target, repository, onChange, onProgress } = options
  const { prompts, lastLandedAt } = plan
  const isUnreachable = createUnreachableTest(repository, plan)
  let count = 0
  for (let start = 0; start < prompts.length; start += concurrency) {
    const some = prompts.slice(start, start + concurrency)
    // A prompt that this sync created has only entries of reachable commits.
    const found = await Promise.all(some.map(({ id }) => (id === null ? [] : findEntries(target, id, isUnreachable))))
    for (const [index, entries] of found.entries()) {
      if (!entries) return null
      const { id, path } = some[index] as { id: string; path: string }
      for (const entry of entries) {
        const isOlder = new Date(entry.created_at) <= lastLandedAt
        const problem = `is not on ${sanitizeBranch(repository.branch)} any more${isOlder ? '' : ', or the clone is behind'}`
        onChange({ change: 'unreachable', prompt: id, path, problem, ...entry })
      }
      count += entries.length
    }
    const done = start + some.length
    onProgress(done, 'histories', done / prompts.length)
  }
  return count
}

/** Returns the entries of a history that match; null when the key may not read it. */
async function findEntries(target: SyncTarget, prompt: string, matches: (entry: HistoryEntry) => boolean) {
  const found: HistoryEntry[] = []
  for (let page = 1, pages = 1; page <= pages; page += 1) {
    const read = await target.readHistory(prompt, page)
    if (!read) return null
    pages = read.pagination.total_pages
    found.push(...read.data.filter(matches))
  }
  return found
}
