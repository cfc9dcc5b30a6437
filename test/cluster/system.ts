// The system under test: two replicas of the binary on a Postgres cluster, one connected to its hosts and one through
// HAProxy, and a Redis Cluster.
import { runForOne, startServer } from '../binary.ts'
import { type Cleanups, createTenantIn, gateKey, openSql, UNREACHABLE_LIMIT } from '../faults/cluster.ts'
import { SMALL_LIMIT } from '../faults/faults.ts'
import { createLedger, prefill } from '../faults/load.ts'
import type { Replica, Tenant } from '../faults/post.ts'
import { startRedisCluster } from '../redis_servers.ts'
import { withRedis } from '../services.ts'
import { startPostgresCluster } from './postgres.ts'

export type System = Awaited<ReturnType<typeof startSystem>>

const TENANTS = 4

export async function startSystem(cleanups: Cleanups) {
  const database = await startPostgresCluster(cleanups)
  const redis = await startRedisCluster()
  cleanups.push(redis.stop)
  await redis.allowFailover()
  const settings = { DATABASE_URL: database.hostsUrl, REDIS_URL: redis.url }
  await runForOne(['migrate'], settings)
  const sql = openSql(database.proxyUrl, cleanups)
  const tenants = await Promise.all(Array.from({ length: TENANTS }, () => createTenantIn(settings, UNREACHABLE_LIMIT)))

  /** One whose count is on the Redis master that will be lost. */
  async function createSmall(): Promise<Tenant> {
    const tenant = await createTenantIn(settings, SMALL_LIMIT)
    const isThere = withRedis(redis.first.url, (on) => on.exists(gateKey(tenant.organisation)))
    // The others answer that the key has moved.
    return isThere.then(() => tenant, createSmall)
  }
  const small = await createSmall()

  const ended: string[] = []
  async function startReplica(name: string, url: string): Promise<Replica> {
    const server = await startServer({ ...settings, DATABASE_URL: url })
    server.ended().then((status) => ended.push(`${name} with ${status}`))
    cleanups.push(server.kill)
    return { name, url: server.url }
  }
  const replicas = [
    await startReplica('several hosts', database.hostsUrl),
    await startReplica('HAProxy', database.proxyUrl),
  ]
  const ledger = createLedger()
  await prefill(ledger, replicas[0] as Replica, small, SMALL_LIMIT)
  return { database, redis, sql, tenants, small, replicas, ended, ledger }
}
