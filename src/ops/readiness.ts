import type { Db } from '../db/client.ts'
import { type Migration, requireMigrated } from '../db/migrations.ts'
import type { Redis } from '../db/redis.ts'
import { within } from '../lib/deadline.ts'

export type ReadinessReport =
  | {
      ready: boolean
      database: 'up' | 'down'
      /** Only reported: the service works without Redis. */
      redis: 'up' | 'down' | 'unused'
    }
  | { ready: false; stopping: true }

export type Readiness = {
  check(): Promise<ReadinessReport>
  /** From now on not ready, so that no new requests are sent here. */
  stop(): void
}

const probeMs = 500
/** Many may ask, and often; the database is asked no more than once in this time. */
const trustedForMs = 1_000

export function createReadiness(db: Db, redis: Redis | undefined, migrations: Migration[]): Readiness {
  let isStopping = false
  let last: { askedAt: number; report: Promise<ReadinessReport> } | undefined

  async function probe(): Promise<ReadinessReport> {
    const database = await within(probeMs, requireMigrated(db.sql, migrations)).then(
      () => 'up' as const,
      () => 'down' as const,
    )
    const redisState = redis ? (redis.status === 'ready' ? 'up' : 'down') : 'unused'
    return { ready: database === 'up', database, redis: redisState }
  }

  return {
    async check() {
      if (!last || performance.now() - last.askedAt >= trustedForMs) {
        last = { askedAt: performance.now(), report: probe() }
      }
      const report = await last.report
      // Asked after the wait: a probe may have been under way when the stop came.
      return isStopping ? { ready: false, stopping: true } : report
    },
    stop() {
      isStopping = true
    },
  }
}
