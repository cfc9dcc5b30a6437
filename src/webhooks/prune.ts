import type { Db } from '../db/client.ts'
import { deleteEvents } from './store_deliveries.ts'

const keptMs = 14 * 24 * 3_600_000
/** Rows per statement: a larger one would hold its locks for too long. */
const batchSize = 5_000

/** Deletes events, with their deliveries, 14 days after they happened, unless an enabled endpoint still waits for one. */
export async function pruneEvents({ sql }: Db, now: Date): Promise<void> {
  const before = new Date(now.getTime() - keptMs)
  while ((await deleteEvents(sql, before, batchSize)) === batchSize);
}
