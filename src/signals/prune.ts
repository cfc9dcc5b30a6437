import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { pruneRows } from '../db/prune.ts'
import { keyRetentionMs } from '../lib/idempotency_key.ts'

/** Deletes expired idempotency keys. */
export const pruneIdempotencyKeys = (db: Db, clock: Clock): Promise<void> =>
  pruneRows(db, 'idempotency_keys', 'created_at', new Date(clock.now().getTime() - keyRetentionMs))
