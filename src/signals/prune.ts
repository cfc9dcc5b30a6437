import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { pruneIdempotencyKeys } from './store.ts'

/** Callers may count on their idempotency keys for this long. */
const keptMs = 24 * 3_600_000
const batchSize = 5_000

/** Deletes the idempotency keys that are past their time, in batches that hold no lock for long. */
export async function pruneOldIdempotencyKeys(db: Db, clock: Clock): Promise<void> {
  const before = new Date(clock.now().getTime() - keptMs)
  while ((await pruneIdempotencyKeys(db.sql, before, batchSize)) === batchSize);
}
