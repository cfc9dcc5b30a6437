import type { Db } from '../db/client.ts'
import { isReadOnly } from '../db/faults.ts'
import { type Migration, requireMigrated, SchemaError } from '../db/migrations.ts'
import type { Redis } from '../db/redis.ts'
import { within } from '../lib/deadline.ts'

export type ReadinessReport =
  | {
      ready: boolean
      database: 'up' | 'down'
      /** Why the database is down. */
      reason?: 'unreachable' | 'read_only' | 'old_schema'
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

function whyDown(error: unknown): 'unreachable' | 'read_only' | 'old_schema' {
  if (error instanceof SchemaError) return 'old_schema'
  return isReadOnly(error) ? 'read_only' : 'unreachable'
}

export function createReadiness(db: Db, redis: Redis | undefined, migrations: Migration[]): Readiness {
  let isStopping = false
  let last: { askedAt: number; report: Promise<ReadinessReport> } | undefined

  async function probe(): Promise<ReadinessReport> {
    const redisState = redis ? (redis.status === 'ready' ? 'up' : 'down') : 'unused'
    try {
      await within(probeMs, Promise.all([requireMigrated(db.sql, migrations), db.requireWritable()]))
      return { ready: true, database: 'up', redis: redisState }
    } catch (error) {
      return { ready: false, database: 'down', reason: whyDown(error), redis: redisState }
    }
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
