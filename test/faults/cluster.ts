// The system under test: two replicas of the binary on one Postgres and one Redis, and their organisations.
import postgres from 'postgres'
import { runForOne, type Server, startServer } from './binary.ts'
import { createLedger, type Ledger } from './load.ts'
import { COMMITS, type Replica, type Tenant } from './post.ts'
import { type Machine, startMachines } from './servers.ts'
import { type Author, createWriteLedger, PATH, REPOSITORY, type WriteLedger } from './writes.ts'

export type RunningReplica = Replica & {
  server: Server
  /**
   * Starts it anew, at another address: its old port may be taken by then. Clients are sent there by what is returned,
   * or by `start` as soon as it serves.
   */
  launch(): Promise<() => void>
  start(): Promise<void>
}

export type Cluster = {
  postgres: Machine
  redis: Machine
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
const UNREACHABLE_LIMIT = 1_000_000

export async function startCluster(cleanups: Cleanups): Promise<Cluster> {
  const machines = await startMachines()
  cleanups.push(machines.postgres.stop, machines.redis.stop)
  const settings = { DATABASE_URL: machines.postgres.url, REDIS_URL: machines.redis.url }
  await runForOne(['migrate'], settings)
  // A server that is back is to be noticed immediately, as the service itself does.
  const sql = postgres(settings.DATABASE_URL, {
    max: 1,
    backoff: () => 0.1,
    connect_timeout: 2,
    onnotice: () => {},
    // This connection can write even while the database is made read-only.
    connection: { default_transaction_read_only: false },
  })
  cleanups.push(() => sql.end({ timeout: 1 }))

  const one = (...args: string[]) => runForOne(args, settings)
  const createTenant = async (monthlyLimit: number): Promise<Tenant> => {
    const limit = ['--monthly-limit', `${monthlyLimit}`]
    const { id: org = '' } = await one('orgs', 'create', '--name', 'Faults', '--plan', 'free', ...limit)
    const { key = '' } = await one('keys', 'create', '--org', org)
    const { id: prompt = '' } = await one('prompts', 'create', '--org', org, '--name', 'Faults')
    const by = ['--user-name', 'Ada', '--user-email', 'ada@example.com', '--branch', 'main']
    for (const commit of COMMITS) {
      await one('history', 'record', '--prompt', prompt, '--action', 'deployed', '--commit-sha', commit, ...by)
    }
    const [row] = await sql<[{ id: number }]>`select id::int from organisations where public_id = ${org}`
    return { organisation: row.id, org, key, prompt }
  }
  const tenants = await Promise.all(Array.from({ length: TENANTS }, () => createTenant(UNREACHABLE_LIMIT)))
  const author = await createAuthor(await createTenant(UNREACHABLE_LIMIT), one)
  const replicas: Cluster['replicas'] = [await startReplica('A', settings), await startReplica('B', settings)]
  cleanups.push(() => Promise.all(replicas.map(({ server }) => server.kill())))
  const ledgers = { ledger: createLedger(), writes: createWriteLedger() }
  return { ...machines, ...ledgers, replicas, settings, sql, tenants, author, createTenant }
}

async function createAuthor(tenant: Tenant, one: (...args: string[]) => ReturnType<typeof runForOne>): Promise<Author> {
  const file = ['--repository', REPOSITORY, '--path', PATH]
  const { id: linkedPrompt = '' } = await one('prompts', 'create', '--org', tenant.org, '--name', 'Linked', ...file)
  const { secret = '' } = await one('webhooks', 'github', 'set', '--org', tenant.org)
  return { ...tenant, linkedPrompt, secret }
}

async function startReplica(name: string, settings: Cluster['settings']): Promise<RunningReplica> {
  const server = await startServer(settings)
  const replica: RunningReplica = {
    name,
    exact: false,
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
