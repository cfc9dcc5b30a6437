import { type HistoryEntry, liveActions } from '../history/schema.ts'
import type { Call } from '../lib/rest.ts'
import { readHistory } from './calls.ts'
import { sanitizeBranch } from './entries.ts'
import type { Plan, SyncedPrompt } from './plan.ts'
import { encode, fullSha } from './program.ts'
import { escapePath, type Repository } from './repository.ts'
import type { SyncOptions } from './sync_options.ts'

/** How many histories are read concurrently. */
const concurrency = 8

/** Finds entries of the branch whose commits the clone does not have. */
function createUnreachableTest(repository: Repository, { commits }: Plan): (entry: HistoryEntry) => boolean {
  const branch = sanitizeBranch(repository.branch)
  return ({ action, branch_name, commit_sha }) => {
    const isOfBranch = branch_name === branch && liveActions.includes(action)
    // Clients may have recorded entries with other names for a commit.
    return isOfBranch && fullSha.test(commit_sha) && !commits.has(commit_sha)
  }
}

/** In a clone that is behind, a file without a prompt may be the old name of one that was renamed since: creates none. */
export async function withoutOldNames({ call, repository }: SyncOptions, plan: Plan): Promise<Plan> {
  const created = plan.prompts.filter(({ id }) => id === null)
  const missing = plan.prompts.flatMap(({ id, missing }) => (id !== null && missing !== null ? id : []))
  const isUnreachable = createUnreachableTest(repository, plan)
  const isLater = (entry: HistoryEntry) => isUnreachable(entry) && new Date(entry.created_at) > plan.lastLandedAt
  for (const id of created.length > 0 ? missing : []) {
    if (!(await readHistory(call, id, 1))?.data.some(isLater)) continue
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
export async function reportUnreachable(
  { call, repository, onChange, onProgress }: SyncOptions,
  plan: Plan,
  prompts: SyncedPrompt[],
): Promise<number | null> {
  const isUnreachable = createUnreachableTest(repository, plan)
  let count = 0
  for (let start = 0; start < prompts.length; start += concurrency) {
    const some = prompts.slice(start, start + concurrency)
    const found = await Promise.all(some.map(({ id }) => findEntries(call, id as string, isUnreachable)))
    for (const [index, entries] of found.entries()) {
      if (!entries) return null
      const { id, path } = some[index] as { id: string; path: string }
      for (const entry of entries) {
        const isOlder = new Date(entry.created_at) <= plan.lastLandedAt
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
async function findEntries(call: Call, prompt: string, matches: (entry: HistoryEntry) => boolean) {
  const found: HistoryEntry[] = []
  for (let page = 1, pages = 1; page <= pages; page += 1) {
    const read = await readHistory(call, prompt, page)
    if (!read) return null
    pages = read.pagination.total_pages
    found.push(...read.data.filter(matches))
  }
  return found
}
