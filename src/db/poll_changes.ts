import { runPeriodically } from '../lib/periodic.ts'
import type { Db } from './client.ts'
import type { Subscription } from './pools.ts'

const pollEveryMs = 1_000

/**
 * Replaces notifications, which no pooler passes on in transaction mode: once a second, the subscribers of a table that
 * has changed are told that they missed something. Each channel is named after its table. Behind a pooler a failover
 * need not cost a connection, so another server counts as one that was lost.
 */
export function pollChanges(db: Db): Db {
  const subscriptions: { subscription: Subscription; version?: string }[] = []
  const lossListeners: (() => void)[] = []
  let server: string | undefined

  async function poll(): Promise<void> {
    if (subscriptions.length === 0) return
    const polled = [...subscriptions]
    const rows = await db.sql<{ server: string; version: string }>`
      select pg_postmaster_start_time()::text as server,
        concat_ws(' ', pg_stat_get_tuples_updated(to_regclass(channel)), pg_stat_get_tuples_deleted(to_regclass(channel)))
          as version
      from unnest(${polled.map(({ subscription: [channel] }) => channel)}::text[]) with ordinality as polled (channel, n)
      order by n`
    const found = rows[0]?.server
    const isOther = server !== undefined && server !== found
    server = found
    if (isOther) for (const onLost of lossListeners) onLost()
    for (const [index, one] of polled.entries()) {
      const version = rows[index]?.version as string
      if (isOther || version !== one.version) one.subscription[2]()
      one.version = version
    }
  }

  const timer = runPeriodically(pollEveryMs, poll)
  return {
    ...db,
    listen: (...subscription) => void subscriptions.push({ subscription }),
    onConnectionLost(listener) {
      lossListeners.push(listener)
      db.onConnectionLost(listener)
    },
    close() {
      timer.stop()
      return db.close()
    },
  }
}
