// The system under test: two replicas of the binary on one Postgres and one Redis, and their organisations.
import postgres from 'postgres'
import { systemClock } from '../../src/clock.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { runForOne, type Server, startServer } from '../binary.ts'
import { startPostgres, startRedis, withRedis } from '../services.ts'
import { insertTenant, openDb } from '../tenant.ts'
import type { Server as Throwaway } from '../throwaway.ts'
import { createLedger, type Ledger } from './load.ts'
import type { Replica, Tenant } from './post.ts'
import { type Author, createWriteLedger, PATH, REPOSITORY, type WriteLedger } from './writes.ts'

export type RunningReplica = Replica & {
  server: Server
  /**
   * Starts it again, at another address: its old port may be taken by then. Clients are sent there by what is returned,
   * or by `start` as soon as it serves.
   */
  launch(): Promise<() => void>
  start(): Promise<void>
}

export type Cluster = {
  postgres: Throwaway
  redis: Throwaway
  replicas: [RunningReplica, RunningReplica]
  settings: { DATABASE_URL: string; REDIS_URL: string }
  /** The suite's own connection to Postgres. */
  sql: postgres.Sql
  ledger: Ledger
  /** Far from their limits. */
  tenants: Tenant[]
  writes: WriteLedger
  author: Author
  createTenant(monthlyLimit: number): Promise<Tenant>
}

/** Done in reverse order, whatever happened. */
export type Cleanups = (() => Promise<unknown>)[]

const TENANTS = 4
export const UNREACHABLE_LIMIT = 1_000_000

export async function startCluster(cleanups: Cleanups): Promise<Cluster> {
  const database = await startPostgres()
  cleanups.push(database.stop)
  const redis = await startRedis()
  // An interrupted run leaves servers stopped, and a stopped process does not end.
  cleanups.push(redis.stop, async () => resume())
  const settings = { DATABASE_URL: database.url, REDIS_URL: redis.url }
  await runForOne(['migrate'], settings)
  const sql = openSql(settings.DATABASE_URL, cleanups)
  const createTenant = (monthlyLimit: number) => createTenantIn(settings, monthlyLimit)
  const tenants = await Promise.all(Array.from({ length: TENANTS }, () => createTenant(UNREACHABLE_LIMIT)))
  const author = await createAuthor(await createTenant(UNREACHABLE_LIMIT), settings)
  const replicas: Cluster['replicas'] = [await startReplica('A', settings), await startReplica('B', settings)]
  cleanups.push(() => Promise.all(replicas.map(({ server }) => server.kill())))
  const ledgers = { ledger: createLedger(), writes: createWriteLedger() }
  return { postgres: database, redis, ...ledgers, replicas, settings, sql, tenants, author, createTenant }
}

/** A server that is back is to be noticed immediately, as the service itself does. */
export function openSql(url: string, cleanups: Cleanups): postgres.Sql {
  const sql = postgres(url, { max: 1, backoff: () => 0.1, connect_timeout: 2, onnotice: () => {} })
  cleanups.push(() => sql.end({ timeout: 1 }))
  return sql
}

export async function createTenantIn(settings: Cluster['settings'], monthlyLimit: number): Promise<Tenant> {
  const db = await openDb(settings)
  try {
    const { org, key, prompt } = await insertTenant(db, systemClock, monthlyLimit)
    const { organisationId } = await requirePrompt(db.sql, prompt)
    return { organisation: organisationId, org, key, prompt }
  } finally {
    await db.close()
  }
}

async function createAuthor(tenant: Tenant, settings: Cluster['settings']): Promise<Author> {
  const file = ['--repository', REPOSITORY, '--path', PATH]
  const linked = ['prompts', 'create', '--org', tenant.org, '--name', 'Linked', ...file]
  const { id: linkedPrompt = '' } = await runForOne(linked, settings)
  const { secret = '' } = await runForOne(['webhooks', 'github', 'set', '--org', tenant.org], settings)
  return { ...tenant, linkedPrompt, secret }
}

async function startReplica(name: string, settings: Cluster['settings']): Promise<RunningReplica> {
  const server = await startServer(settings)
  const replica: RunningReplica = {
    name,
    url: server.url,
    server,
    async launch() {
      replica.server = await startServer(settings)
      return () => {
        replica.url = replica.server.url
      }
    },
    async start() {
      const publish = await replica.launch()
      publish()
    },
  }
  return replica
}

let stopped: number[] = []

/** Runs the work while the server, and the processes that it has started, are stopped. */
export async function whileStopped<T>(
  server: Throwaway,
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
export async function readGate(url: string, organisation: number): Promise<number | null> {
  const text = await withRedis(url, (client) => client.get(gateKey(organisation))).catch(() => null)
  return text === null ? null : Number(text)
}

export async function setGate(url: string, organisation: number, count: number): Promise<void> {
  await withRedis(url, (client) => client.set(gateKey(organisation), count))
}

export const gateKey = (organisation: number): string =>
  `prompt-signals:signals:{${organisation}}:${new Date().toISOString().slice(0, 7)}`
