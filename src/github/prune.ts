import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { deleteOld } from './store.ts'

const dayMs = 24 * 3_600_000
/** GitHub redelivers for three days at most. */
const deliveriesKeptMs = 7 * dayMs
/** How long a branch may wait for its pull request, and a closed pull request to be reopened. */
const workKeptMs = 365 * dayMs
const batchSize = 5_000

/** Deletes deliveries, pushes and pull requests that are past their retention time. */
export async function pruneDeliveries(db: Db, clock: Clock): Promise<void> {
  const now = clock.now().getTime()
  await prune(db, 'github_deliveries', new Date(now - deliveriesKeptMs))
  await prune(db, 'github_affected_prompts', new Date(now - workKeptMs))
  // Pull requests are deleted after the pushes, because a merged pull request marks earlier pushes to its branch as merged.
  await prune(db, 'github_pull_requests', new Date(now - workKeptMs))
}

async function prune(db: Db, table: Parameters<typeof deleteOld>[1], before: Date): Promise<void> {
  let deleted = batchSize
  while (deleted === batchSize) deleted = await db.transaction((sql) => deleteOld(sql, table, before, batchSize))
}
