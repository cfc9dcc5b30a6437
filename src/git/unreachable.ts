import type { HistoryEntry } from '../history/schema.ts'
import type { Plan } from './plan.ts'
import type { SyncTarget } from './target.ts'

/** An entry of a commit that is unreachable from the branch. */
export type UnreachableEntry = HistoryEntry & { change: 'unreachable'; prompt: string; path: string; problem: string }

const concurrency = 8

/** Callers may have recorded entries with other names for a commit. */
const fullHash = /^[0-9a-f]{40,64}$/

/**
 * Reports the entries of the branch whose commits are unreachable, and returns their number; null when the key may not
 * read histories. Changes nothing: the commits were live, and no action says that this ended.
 */
export async function reportUnreachable(
  target: SyncTarget,
  branch: string,
  { prompts, commits, lastLandedAt }: Plan,
  onChange: (change: UnreachableEntry) => void,
  onProgress: (done: number, noun: string, share: number) => void,
): Promise<number | null> {
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
