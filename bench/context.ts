// What every section of the benchmark shares: one throwaway Postgres and Redis, the built binary, and tenants.
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Db } from '../src/db/client.ts'
import { findOrInstall, postgresProgram } from '../test/programs.ts'
import { startServices } from '../test/services.ts'
import { createCopies, openOwnDatabase } from './database.ts'
import { createTenants, unreachableLimit } from './fixtures.ts'
import { type LoadTool, type Request, wrkProgram } from './load.ts'
import type { Plan } from './plan.ts'
import { runProgram } from './processes.ts'
import { createReport, type Report } from './report.ts'
import { type Server, startServer } from './server.ts'

/** The built program, and the settings of the database it works on. */
export type Operator = { program: string; settings: Record<string, string>; cwd: string; signal: AbortSignal }

export type Context = {
  load: LoadTool
  pgbench: string
  folder: string
  databaseUrl: string
  database: Db
  operator: Operator
  requests: Request[]
  report: Report
  plan: Plan
  signal: AbortSignal
  /** Starts the binary on the shared Postgres and Redis, or with the settings given. */
  serve(settings?: Record<string, string>): Promise<Server>
  servePlain(): Promise<Server>
}

/** Run in reverse order, also after a failure. */
export type Cleanups = (() => Promise<void>)[]

const root = join(import.meta.dir, '..')
const plain = join(import.meta.dir, 'plain')

export async function prepareContext(plan: Plan, signal: AbortSignal, cleanups: Cleanups): Promise<Context> {
  const folder = await mkdtemp(join(tmpdir(), 'prompt-signals-bench-'))
  cleanups.push(() => rm(folder, { recursive: true, force: true }))
  const [wrk = ''] = await findOrInstall([wrkProgram])
  const node = Bun.which('node')
  if (!node) throw new Error('The benchmark needs node on the PATH, for the service that it compares with')
  await runProgram([process.execPath, '--no-env-file', 'scripts/build.ts'], { cwd: root, signal })
  // A copy, so that a build beside this run does not change what is measured.
  const program = join(folder, 'prompt-signals')
  await copyFile(join(root, 'dist/prompt-signals'), program)
  await runProgram([process.execPath, 'install', '--frozen-lockfile'], { cwd: plain, signal })

  // The databases named for the tests may be a developer's own, and the benchmark empties tables.
  delete process.env.TEST_DATABASE_URL
  delete process.env.TEST_REDIS_URL
  const services = await startServices()
  cleanups.push(services.stop)
  const settings = { DATABASE_URL: services.databaseUrl, REDIS_URL: services.redisUrl }
  const cwd = join(folder, 'empty')
  await mkdir(cwd)
  const operator = { program, settings, cwd, signal }
  await runProgram([program, 'migrate'], { cwd, env: settings, signal })
  const database = await openOwnDatabase(settings)
  cleanups.push(database.close)
  await createCopies(database)
  const requests = await createTenants(database, { organisations: 10, promptsEach: 10, monthlyLimit: unreachableLimit })

  const start = async (command: string[], env: Record<string, string>) => {
    const server = await startServer({ command, env, cwd, signal })
    cleanups.push(server.stop)
    return server
  }
  return {
    load: { wrk, folder, signal },
    pgbench: join(postgresProgram.find() ?? '', 'pgbench'),
    folder,
    databaseUrl: services.databaseUrl,
    database,
    operator,
    requests,
    report: createReport(),
    plan,
    signal,
    serve: (own = settings) => start([program, 'serve'], own),
    servePlain: () => start([node, join(plain, 'server.js')], { ...settings, NODE_ENV: 'production' }),
  }
}
