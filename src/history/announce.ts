import type { Sql } from '../db/client.ts'
import { emitEvent } from '../webhooks/events.ts'
import { showTitledEntry } from './read.ts'
import { selectLiveChanges } from './store_known.ts'
import type { Inserted } from './store_write.ts'

/** An older change is not news: it comes from a sync or an import. */
const newsMs = 24 * 3_600_000
/** Replicas and GitHub may report changes of the same minutes in another order: an overtaken change went live too. */
const overtakenMs = 10 * 60_000

/** Tells endpoints, in the caller's transaction, which of the new entries went live: at most one per prompt. */
export async function announceChanges(
  sql: Sql,
  organisationId: number,
  inserted: Inserted[],
  now: Date,
): Promise<void> {
  const ids = inserted.flatMap(({ ids, isWatched }) => (isWatched ? ids : []))
  if (ids.length === 0) return
  const [since, overtakenSince] = [newsMs, overtakenMs].map((ms) => new Date(now.getTime() - ms)) as [Date, Date]
  for (const { prompt, entry } of await selectLiveChanges(sql, organisationId, ids, since, overtakenSince)) {
    const data = { prompt, change: showTitledEntry(entry) }
    const once = `change.live ${entry.id}`
    await emitEvent(sql, { organisationId, type: 'change.live', once, promptId: prompt.id, data, now })
  }
}
