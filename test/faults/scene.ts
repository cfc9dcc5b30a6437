// What every fault happens to: two replicas of the binary on one Postgres and one Redis, and their organisations.
import postgres from 'postgres'
import { createOperator, createTenant, run, type Server, startServer } from '../program.ts'
import { createLedger, type Ledger } from './load.ts'
import type { Replica, Tenant } from './post.ts'
import { type Machine, startMachines } from './servers.ts'

export type RunningReplica = Replica & {
  server: Server
  /** Starts it anew, at another address: its old port may be taken by then. */
  start(): Promise<void>
}

export type Scene = {
  postgres: Machine
  redis: Machine
  replicas: [RunningReplica, RunningReplica]
  settings: { DATABASE_URL: string; REDIS_URL: string }
  /** The suite's own connection to Postgres. */
  sql: postgres.Sql
  ledger: Ledger
  /** Far from their limits. */
  tenants: Tenant[]
  createTenant(monthlyLimit: number): Promise<Tenant>
}

/** Done in reverse order, whatever happened. */
export type Cleanups = (() => Promise<unknown>)[]

const TENANTS = 4
const UNREACHABLE_LIMIT = 1_000_000

export async function setScene(cleanups: Cleanups): Promise<Scene> {
  const machines = await startMachines()
  cleanups.push(machines.postgres.stop, machines.redis.stop)
  const settings = { DATABASE_URL: machines.postgres.url, REDIS_URL: machines.redis.url }
  const { status, stderr } = await run(['migrate'], { settings })
  if (status !== 0) throw new Error(`migrate failed: ${stderr}`)
  // Like the service's own: a server that is back is to be noticed at once.
  const sql = postgres(settings.DATABASE_URL, { max: 1, backoff: () => 0.1, connect_timeout: 2, onnotice: () => {} })
  cleanups.push(() => sql.end({ timeout: 1 }))

  const operator = createOperator(settings)
  const createOne = async (monthlyLimit: number): Promise<Tenant> => {
    const tenant = await createTenant(operator, monthlyLimit)
    const [row] = await sql<[{ id: number }]>`select id::int from organisations where public_id = ${tenant.org}`
    return { ...tenant, organisation: row.id }
  }
  const tenants = await Promise.all(Array.from({ length: TENANTS }, () => createOne(UNREACHABLE_LIMIT)))
  const replicas: Scene['replicas'] = [await startReplica('A', settings), await startReplica('B', settings)]
  cleanups.push(() => Promise.all(replicas.map(({ server }) => server.kill())))
  return { ...machines, replicas, settings, sql, ledger: createLedger(), tenants, createTenant: createOne }
}

async function startReplica(name: string, settings: Scene['settings']): Promise<RunningReplica> {
  const server = await startServer(settings)
  const replica: RunningReplica = {
    name,
    exact: false,
    url: server.url,
    server,
    async start() {
      replica.server = await startServer(settings)
      replica.url = replica.server.url
    },
  }
  return replica
}
