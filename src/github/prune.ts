import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { deleteOld } from './store.ts'

const dayMs = 24 * 3_600_000
/** GitHub sends a delivery again for three days at most. */
const deliveriesKeptMs = 7 * dayMs
/** How long a branch may wait for its pull request. */
const touchesKeptMs = 365 * dayMs
const atOnce = 5_000

/** Forgets deliveries and pushes that are past their time. */
export async function pruneDeliveries(db: Db, clock: Clock): Promise<void> {
  const now = clock.now().getTime()
  const deliveriesBefore = new Date(now - deliveriesKeptMs)
  const touchesBefore = new Date(now - touchesKeptMs)
  while (await deleteOld(db.sql, deliveriesBefore, touchesBefore, atOnce));
}
