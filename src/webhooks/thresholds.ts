import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { monthOf } from '../lib/months.ts'
import { emitEvent } from './events.ts'
import { insertTold, selectUntold, thresholds } from './store_thresholds.ts'

export const thresholdsEveryMs = 15_000

/** Tells endpoints that an organisation has used a share of its month: each share once a month, whatever its limit becomes. */
export async function tellThresholds(db: Db, clock: Clock): Promise<void> {
  const now = clock.now()
  const { name: month, date } = monthOf(now)
  for (const { organisationId, id, name, used, limit } of await selectUntold(db.sql, date)) {
    await db.transaction(
      async (sql) => {
        for (const threshold of thresholds.filter((percent) => used * 100 >= limit * percent)) {
          if (!(await insertTold(sql, organisationId, date, threshold))) continue
          await emitEvent(sql, {
            organisationId,
            type: 'usage.threshold',
            once: `usage.threshold ${month} ${threshold}`,
            data: { organisation: { id, name }, month, threshold, used, limit },
            now,
          })
        }
      },
      { tenant: organisationId },
    )
  }
}
