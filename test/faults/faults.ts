// The faults, each named after what must hold through it.

import type { Cluster } from './cluster.ts'
import type { Findings } from './findings.ts'
import type { Tenant } from './post.ts'
import { crashPostgres, stopPostgres } from './postgres_faults.ts'
import { flushRedis, killRedis, stopRedis } from './redis_faults.ts'
import { killReplica } from './replica_faults.ts'

export type Fault = {
  name: string
  /** Injects the fault under load; resolves with its assessment, to be run once every request has ended. */
  inject(cluster: Cluster, small: Tenant): Promise<() => Findings | Promise<Findings>>
  /** Whether `bun run test` runs it; `bun run test:all` runs all. */
  isInEveryRun?: true
}

/** Its first nine tenths fit into one batch. */
export const SMALL_LIMIT = 1_000

export const faults: Fault[] = [
  { name: 'kill -9 of a replica, three times: nothing acknowledged is lost', inject: killReplica, isInEveryRun: true },
  { name: 'Redis FLUSHALL: no caller notices', inject: flushRedis },
  { name: 'Redis killed and back empty: no caller notices', inject: killRedis },
  { name: 'Redis stopped for 2 s: no caller waits for it', inject: stopRedis },
  {
    name: 'Postgres ended immediately and restarted, three times: nothing acknowledged is lost',
    inject: (cluster) => crashPostgres(cluster, 'SIGQUIT'),
    isInEveryRun: true,
  },
  {
    name: 'kill -9 of Postgres, three times: nothing acknowledged is lost',
    inject: (cluster) => crashPostgres(cluster, 'SIGKILL'),
  },
  {
    name: 'Postgres stopped for 3 s: late or rejected, never wrong',
    inject: (cluster) => stopPostgres(cluster, 3_000),
  },
  {
    name: 'Postgres stopped for 6 s: rejected in time, never wrong',
    inject: (cluster) => stopPostgres(cluster, 6_000),
  },
]
