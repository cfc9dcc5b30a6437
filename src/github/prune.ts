import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { deleteOldDeliveries, deleteOldPullRequests, deleteOldTouches } from './store.ts'

const dayMs = 24 * 3_600_000
/** GitHub sends a delivery again for three days at most. */
const deliveriesKeptMs = 7 * dayMs
/** How long a branch may wait for its pull request, and a closed one to be reopened. */
const workKeptMs = 365 * dayMs
const atOnce = 5_000

/** Forgets deliveries, pushes and pull requests that are past their time. */
export async function pruneDeliveries({ sql }: Db, clock: Clock): Promise<void> {
  const now = clock.now().getTime()
  const deliveriesBefore = new Date(now - deliveriesKeptMs)
  const workBefore = new Date(now - workKeptMs)
  while (await deleteOldDeliveries(sql, deliveriesBefore, atOnce));
  while (await deleteOldTouches(sql, workBefore, atOnce));
  // After the pushes, since a merge says which of them a branch has behind it.
  while (await deleteOldPullRequests(sql, workBefore, atOnce));
}
