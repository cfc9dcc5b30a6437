import type { Db } from '../db/client.ts'
import { isDown, isPostgresError, isReadOnly } from '../db/errors.ts'
import { type Migration, requireSchema, SchemaError } from '../db/migrations.ts'
import type { Redis } from '../db/redis.ts'
import type { Drain } from '../http/drain.ts'
import { probeKeys } from '../keys/verify.ts'
import { DeadlineError, within } from '../lib/deadline.ts'

export type Readiness = ReturnType<typeof createReadiness>

const probeMs = 500
/** Every statement waits for the one before it there, so late means busy, and no other instance could take over. */
const embeddedProbeMs = 2_500
/** The database is queried at most once in this time, however frequent the probes. */
const trustedForMs = 1_000
/** The driver reconnects to a read-only database about once a second, so a probe in between may find no session. */
const readOnlyForMs = 5_000

export function createReadiness(db: Db, redis: Redis | undefined, migrations: Migration[], drain: Drain) {
  let readOnlyAt = Number.NEGATIVE_INFINITY
  let last: { probedAt: number; report: ReturnType<typeof probe> } | undefined

  function reasonFor(error: unknown) {
    if (error instanceof SchemaError) return 'old_schema'
    const now = performance.now()
    if (isReadOnly(error)) readOnlyAt = now
    else if (!(error instanceof DeadlineError)) readOnlyAt = Number.NEGATIVE_INFINITY
    if (now - readOnlyAt < readOnlyForMs) return 'read_only'
    return isPostgresError(error) && !isDown(error) ? 'failing' : 'unreachable'
  }

  async function probe() {
    // Does not affect readiness: the service works without Redis.
    const redisState = describeRedis(redis)
    try {
      const probes = [requireSchema(db.sql, migrations, true), db.requireWritable(), probeKeys(db)]
      await within(db.isEmbedded ? embeddedProbeMs : probeMs, Promise.all(probes))
      return { ready: true, database: 'up', ...redisState }
    } catch (error) {
      return { ready: false, database: 'down', reason: reasonFor(error), ...redisState }
    }
  }

  return {
    async check() {
      if (!last || performance.now() - last.probedAt >= trustedForMs) {
        last = { probedAt: performance.now(), report: probe() }
      }
      const report = await last.report
      // Read after the wait, because the stop may come during a probe.
      return drain.isDraining ? { ready: false, stopping: true } : report
    },
  }
}

function describeRedis(redis: Redis | undefined) {
  if (!redis) return { redis: 'unused' }
  if (redis.status === 'ready' && !redis.error) return { redis: 'up' }
  return { redis: 'down', ...(redis.error ? { redis_error: redis.error } : {}) }
}
