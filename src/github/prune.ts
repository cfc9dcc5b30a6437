import type { Db } from '../db/client.ts'
import { pruneTable } from '../db/prune.ts'

const dayMs = 24 * 3_600_000
/** GitHub redelivers for three days at most. */
const deliveriesKeptMs = 7 * dayMs
/** How long a branch may wait for its pull request, and a closed pull request to be reopened. */
const workKeptMs = 365 * dayMs

/** Deletes deliveries, pushes and pull requests that are past their retention time. */
export async function pruneDeliveries(db: Db, now: Date): Promise<void> {
  const workKeptSince = new Date(now.getTime() - workKeptMs)
  await pruneTable(db, 'github_deliveries', 'received_at', new Date(now.getTime() - deliveriesKeptMs))
  await pruneTable(db, 'github_affected_prompts', 'pushed_at', workKeptSince)
  // Pull requests are deleted after the pushes, because a merged pull request marks earlier pushes to its branch as merged.
  await pruneTable(db, 'github_pull_requests', 'closed_at', workKeptSince)
}
