import type { HistoryEntry } from '../history/schema.ts'
import type { Plan } from './plan.ts'
import type { SyncTarget } from './target.ts'

/** An entry of a commit that is not on the branch. */
export type TakenBack = HistoryEntry & { change: 'taken_back'; prompt: string; path: string; problem: string }

type Reporting = {
  onChange(change: TakenBack): void
  onProgress(done: number, noun: string, share: number): void
}

/** How many histories are read concurrently. */
const promptsAtOnce = 8

/** What a caller has recorded may name a commit in other ways. */
const fullHash = /^[0-9a-f]{40,64}$/

/**
 * Reports which entries of a branch are of commits that are not on it, and returns how many; null when the histories may
 * not be read. Nothing is changed: they were live, and the history has no action for the end of that.
 */
export async function reportTakenBack(
  target: SyncTarget,
  branch: string,
  { prompts, commits, lastArrivalAt }: Plan,
  { onChange, onProgress }: Reporting,
): Promise<number | null> {
  const isTakenBack = ({ action, branch_name, commit_sha }: HistoryEntry) => {
    const isOfBranch = branch_name === branch && (action === 'deployed' || action === 'pr_merged')
    return isOfBranch && fullHash.test(commit_sha) && !commits.has(commit_sha)
  }
  let count = 0
  for (let start = 0; start < prompts.length; start += promptsAtOnce) {
    const some = prompts.slice(start, start + promptsAtOnce)
    // A prompt that was made just now has nothing but what is on the branch.
    const found = await Promise.all(some.map(({ id }) => (id === null ? [] : findEntries(target, id, isTakenBack))))
    for (const [index, entries] of found.entries()) {
      if (!entries) return null
      const { id, path } = some[index] as { id: string; path: string }
      for (const entry of entries) {
        const isOlder = new Date(entry.created_at) <= lastArrivalAt
        const problem = `is not on ${branch} any more${isOlder ? '' : ', or the clone is behind'}`
        onChange({ change: 'taken_back', prompt: id, path, problem, ...entry })
      }
      count += entries.length
    }
    const done = start + some.length
    onProgress(done, 'histories', done / prompts.length)
  }
  return count
}

/** Those entries of a history that match; null when it may not be read. */
async function findEntries(
  target: SyncTarget,
  prompt: string,
  matches: (entry: HistoryEntry) => boolean,
): Promise<HistoryEntry[] | null> {
  const found: HistoryEntry[] = []
  for (let page = 1, pages = 1; page <= pages; page += 1) {
    const read = await target.readHistory(prompt, page)
    if (!read) return null
    pages = read.pagination.total_pages
    found.push(...read.data.filter(matches))
  }
  return found
}
