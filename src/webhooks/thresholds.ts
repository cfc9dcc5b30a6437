import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { monthOf } from '../lib/months.ts'
import { emitEvent } from './events.ts'
import { insertTold, selectUntold, thresholds, type UsedMonth } from './store_events.ts'

export const thresholdsEveryMs = 15_000

/** Tells endpoints that an organisation has used a share of its month: each share once a month, whatever its limit becomes. */
export async function tellThresholds(db: Db, clock: Clock): Promise<void> {
  const now = clock.now()
  const failures: unknown[] = []
  for (const used of await selectUntold(db.sql, monthOf(now).date)) {
    const { organisationId: tenant } = used
    // One that uses all its transactions must not keep the others from theirs.
    await db.transaction((sql) => tell(sql, used, now), { tenant }).catch((error) => failures.push(error))
  }
  if (failures.length > 0) throw failures[0]
}

async function tell(sql: Sql, { organisationId, id, name, used, limit }: UsedMonth, now: Date): Promise<void> {
  const { name: month, date } = monthOf(now)
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
}
