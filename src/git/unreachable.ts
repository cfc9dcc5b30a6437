import type { HistoryEntry } from '../history/schema.ts'
import type { Plan } from './plan.ts'
import type { SyncOptions } from './sync_entries.ts'
import type { SyncTarget } from './target.ts'

/** How many histories are read concurrently. */
const concurrency = 8
/** Callers may have recorded entries with other names for a commit. */
const fullHash = /^[0-9a-f]{40,64}$/

/** Reports and counts entries of unreachable commits; null if the key may not read them. No action could record this. */
export async function reportUnreachable(options: SyncOptions, branch: string, plan: Plan): Promise<number | null> {
  const { target, onChange, onProgress } = options
  const { prompts, commits, lastLandedAt } = plan
  const isUnreachable = ({ action, branch_name, commit_sha }: HistoryEntry) => {
    const isOfBranch = branch_name === branch && (action === 'deployed' || action === 'pr_merged')
    return isOfBranch && fullHash.test(commit_sha) && !commits.has(commit_sha)
  }
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
        const problem = `is not on ${branch} any more${isOlder ? '' : ', or the clone is behind'}`
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
