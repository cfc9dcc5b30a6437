// The system under test: replicas of the binary on one of three topologies of servers, and their organisations.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { systemClock } from '../../src/clock.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { runForOne, type Server, type Settings, startServer } from '../binary.ts'
import { startRedisCluster } from '../redis_servers.ts'
import { startPostgres, startRedis, withRedis } from '../services.ts'
import { insertTenant, openDb } from '../tenant.ts'
import type { Audited } from './audit.ts'
import { type Author, PATH, type Pace, REPOSITORY, type Replica, type Tenant } from './load.ts'
import { startPostgresCluster } from './patroni.ts'

export type RunningReplica = Replica & {
  server: Server
  /** Whether it has ever ended although nobody killed it. */
  hasEnded: boolean
  kill(): Promise<void>
  /**
   * Starts it again, at another address: its old port may be taken by then. Clients are sent there by what is returned,
   * or by `start` as soon as it serves.
   */
  launch(): Promise<() => void>
  start(): Promise<void>
}

export type System<Servers = unknown> = Omit<Audited, 'replicas'> & {
  replicas: RunningReplica[]
  /** Those of the first replica and of commands. */
  settings: Settings
  servers: Servers
  redisUrls: string[]
  pace: Pace
  createTenant(monthlyLimit: number): Promise<Tenant>
}

export type Plain = Awaited<ReturnType<typeof startPlain>>
export type Clustered = Awaited<ReturnType<typeof startClustered>>

/** Done in reverse order, whatever happened. */
export type Cleanups = (() => Promise<unknown>)[]

const TENANTS = 4
const UNREACHABLE_LIMIT = 2_000_000_000
/** Enough load to have requests in flight at every moment, and no more rows than can be checked. */
const PAUSE_MS = 10

/** One Postgres and one Redis under two replicas. */
export async function startPlain(cleanups: Cleanups, clients = 48) {
  const database = await startPostgres()
  cleanups.push(database.stop)
  const redis = await startRedis()
  // An interrupted run leaves servers stopped, and a stopped process does not end.
  cleanups.push(redis.stop, async () => resume())
  const settings = { DATABASE_URL: database.url, REDIS_URL: redis.url }
  const replicas = [await startReplica('A', settings, cleanups), await startReplica('B', settings, cleanups)]
  const pace = { routes: [replicas], clients, pauseMs: PAUSE_MS }
  const sql = openSql(database.url, cleanups)
  return complete({ servers: { postgres: database, redis }, redisUrls: [redis.url], settings, sql, replicas, pace })
}

/** A Postgres cluster under two replicas, one connected to its hosts and one through HAProxy, and a Redis Cluster. */
export async function startClustered(cleanups: Cleanups) {
  const database = await startPostgresCluster(cleanups)
  const redis = await startRedisCluster()
  cleanups.push(redis.stop)
  await redis.allowFailover()
  const settings = { DATABASE_URL: database.hostsUrl, REDIS_URL: redis.url }
  const throughProxy = { ...settings, DATABASE_URL: database.proxyUrl }
  const replicas = [
    await startReplica('several hosts', settings, cleanups),
    await startReplica('HAProxy', throughProxy, cleanups),
  ]
  // Few, to leave the machine to the servers: of both replicas by turns, and of each, which the other does not slow down.
  const pace = { routes: [replicas, ...replicas.map((one) => [one])], clients: 4, pauseMs: PAUSE_MS }
  const sql = openSql(database.proxyUrl, cleanups)
  const redisUrls = redis.servers.map(({ url }) => url)
  return complete({ servers: { database, redis }, redisUrls, settings, sql, replicas, pace })
}

/** One replica on the embedded engine. */
export async function startEmbedded(cleanups: Cleanups, clients: number) {
  const folder = mkdtempSync(join(tmpdir(), 'ps-soak-'))
  cleanups.push(async () => rmSync(folder, { recursive: true, force: true }))
  const settings = { DATA_DIR: join(folder, 'data') }
  const replicas = [await startReplica('A', settings, cleanups)]
  const db = await openDb(settings)
  cleanups.push(db.close)
  // Of either, the checks use only templates.
  const sql = db.sql as unknown as postgres.Sql
  const pace = { routes: [replicas], clients, pauseMs: PAUSE_MS }
  return complete({ servers: {}, redisUrls: [], settings, sql, replicas, pace })
}

type Started<Servers> = Pick<System<Servers>, 'servers' | 'redisUrls' | 'settings' | 'sql' | 'replicas' | 'pace'>

async function complete<Servers>(started: Started<Servers>): Promise<System<Servers>> {
  const { settings } = started
  const createTenant = (monthlyLimit: number) => createTenantIn(settings, monthlyLimit)
  const tenants = await Promise.all(Array.from({ length: TENANTS }, () => createTenant(UNREACHABLE_LIMIT)))
  const author = await createAuthor(await createTenant(UNREACHABLE_LIMIT), settings)
  const ledger = { attempts: [], unanswered: [] }
  return { ...started, ledger, tenants, author, createTenant }
}

/** A server that is back is to be noticed immediately, as the service itself does. */
function openSql(url: string, cleanups: Cleanups): postgres.Sql {
  const sql = postgres(url, { max: 1, backoff: () => 0.1, connect_timeout: 2, onnotice: () => {} })
  cleanups.push(() => sql.end({ timeout: 1 }))
  return sql
}

async function createTenantIn(settings: Settings, monthlyLimit: number): Promise<Tenant> {
  const db = await openDb(settings)
  try {
    const { org, key, prompt } = await insertTenant(db, systemClock, monthlyLimit)
    const { organisationId } = await requirePrompt(db.sql, prompt)
    return { organisation: organisationId, org, key, prompt }
  } finally {
    await db.close()
  }
}

async function createAuthor(tenant: Tenant, settings: Settings): Promise<Author> {
  const file = ['--repository', REPOSITORY, '--path', PATH]
  const linked = ['prompts', 'create', '--org', tenant.org, '--name', 'Linked', ...file]
  const { id: linkedPrompt = '' } = await runForOne(linked, settings)
  const { secret = '' } = await runForOne(['webhooks', 'github', 'set', '--org', tenant.org], settings)
  return { ...tenant, linkedPrompt, secret }
}

async function startReplica(name: string, settings: Settings, cleanups: Cleanups): Promise<RunningReplica> {
  if (settings.DATABASE_URL) await runForOne(['migrate'], settings)
  const killed = new Set<Server>()
  cleanups.push(() => replica.kill())
  const replica = {
    name,
    hasEnded: false,
    async launch() {
      const server = await startServer(settings)
      server.ended().then(() => {
        replica.hasEnded ||= !killed.has(server)
      })
      replica.server = server
      return () => {
        replica.url = server.url
      }
    },
    async kill() {
      killed.add(replica.server)
      await replica.server.kill()
    },
    async start() {
      const publish = await replica.launch()
      publish()
    },
  } as RunningReplica
  await replica.start()
  return replica
}

let stopped: number[] = []

/** Runs the work while the server, and the processes that it has started, are stopped. */
export async function whileStopped<T>(
  server: { pid(): number },
  work: () => Promise<T>,
  children: () => Promise<number[]> = async () => [],
): Promise<T> {
  const stop = (pid: number) => {
    stopped.push(pid)
    sendTo(pid, 'SIGSTOP')
  }
  try {
    // The parent first: it starts no further process while the others are listed.
    stop(server.pid())
    for (const child of await children()) stop(child)
    return await work()
  } finally {
    resume()
  }
}

function resume(): void {
  for (const pid of stopped.reverse()) sendTo(pid, 'SIGCONT')
  stopped = []
}

function sendTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended, and needs no signal.
  }
}

/** What Redis has counted for the organisation this month; null when it has nothing, or does not answer. */
export async function readGate(urls: string[], { organisation }: Tenant): Promise<number | null> {
  // Of a cluster, one server has the key; the others answer that it has moved.
  const read = (url: string) => withRedis(url, (client) => client.get(gateKey(organisation))).catch(() => null)
  const text = (await Promise.all(urls.map(read))).find((found) => found !== null)
  return text === undefined ? null : Number(text)
}

export async function setGate(url: string, { organisation }: Tenant, count: number): Promise<void> {
  await withRedis(url, (client) => client.set(gateKey(organisation), count))
}

export const gateKey = (organisation: number): string =>
  `prompt-signals:signals:{${organisation}}:${new Date().toISOString().slice(0, 7)}`
