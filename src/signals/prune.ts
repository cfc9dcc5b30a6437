import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { deleteRepeatKeys } from './store.ts'

/** Callers may count on their idempotency keys for this long. */
const keptMs = 24 * 3_600_000
const atOnce = 5_000

/** Forgets idempotency keys that are past their time. */
export async function pruneRepeatKeys(db: Db, clock: Clock): Promise<void> {
  const before = new Date(clock.now().getTime() - keptMs)
  while (await deleteRepeatKeys(db.sql, before, atOnce));
}
