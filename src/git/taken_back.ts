import type { HistoryEntry } from '../history/schema.ts'
import type { Plan } from './plan.ts'
import type { SyncTarget } from './target.ts'

/** An entry of a commit that is not on the branch. */
export type TakenBack = HistoryEntry & { change: 'taken_back'; prompt: string; path: string; problem: string }

type Reporting = {
  onChange(change: TakenBack): void
  onProgress(done: number, noun: string, share: number): void
}

/** What a caller has recorded may name a commit in other ways. */
const fullHash = /^[0-9a-f]{40,64}$/

/**
 * Reports which entries of a branch are of commits that are not on it, and returns how many; null when the histories may
 * not be read. Nothing is changed: they were live, and the history has no action for the end of that.
 */
export async function reportTakenBack(
  target: SyncTarget,
  branch: string,
  { prompts, commits, readAt }: Plan,
  { onChange, onProgress }: Reporting,
): Promise<number | null> {
  const isTakenBack = ({ action, branch_name, commit_sha }: HistoryEntry) => {
    const isOfBranch = branch_name === branch && (action === 'deployed' || action === 'pr_merged')
    return isOfBranch && fullHash.test(commit_sha) && !commits.has(commit_sha)
  }
  let count = 0
  for (const [done, { id, path }] of prompts.entries()) {
    // A prompt that was made just now has nothing but what is on the branch.
    for (let page = 1, pages = 1; id !== null && page <= pages; page += 1) {
      const read = await target.readHistory(id, page)
      if (!read) return null
      pages = read.pagination.total_pages
      for (const entry of read.data.filter(isTakenBack)) {
        count += 1
        const isOlder = new Date(entry.created_at) <= readAt
        const problem = `is not on ${branch} any more${isOlder ? '' : ', or the clone is behind'}`
        onChange({ change: 'taken_back', prompt: id, path, problem, ...entry })
      }
    }
    onProgress(done + 1, 'histories', (done + 1) / prompts.length)
  }
  return count
}
