import type { Db } from '../db/client.ts'
import { type Migration, requireMigrated } from '../db/migrations.ts'
import type { Redis } from '../db/redis.ts'
import { within } from '../lib/deadline.ts'

export type ReadinessReport = {
  ready: boolean
  database: 'up' | 'down'
  /** Only reported: the service works without Redis. */
  redis: 'up' | 'down' | 'unused'
}

export type Readiness = () => Promise<ReadinessReport>

const probeMs = 500

export function createReadiness(db: Db, redis: Redis | undefined, migrations: Migration[]): Readiness {
  return async () => {
    const database = await within(probeMs, requireMigrated(db.sql, migrations)).then(
      () => 'up' as const,
      () => 'down' as const,
    )
    const redisState = redis ? (redis.status === 'ready' ? 'up' : 'down') : 'unused'
    return { ready: database === 'up', database, redis: redisState }
  }
}
