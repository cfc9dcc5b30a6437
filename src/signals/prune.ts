import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { keyRetentionMs } from '../lib/idempotency_key.ts'
import { deleteIdempotencyKeys } from './store_deletes.ts'

const batchSize = 5_000

/** Deletes expired idempotency keys, in batches that hold no lock for long. */
export async function pruneIdempotencyKeys(db: Db, clock: Clock): Promise<void> {
  const before = new Date(clock.now().getTime() - keyRetentionMs)
  while ((await deleteIdempotencyKeys(db.sql, before, batchSize)) === batchSize);
}
