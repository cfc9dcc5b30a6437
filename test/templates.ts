// A migrated database of each engine, made once a run: each test file copies one instead of migrating its own.
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import postgres from 'postgres'
import { cleanEnvironment } from './environment.ts'

export interface Templates {
  env: { TEST_TEMPLATE: string; TEST_TEMPLATE_DIR: string }
  /** Removes the templates and every copy of them that a test left behind. */
  remove(): Promise<void>
}

const ROOT = join(import.meta.dir, '..')
const TEMPLATE_PREFIX = 'ps_template_'

/** Makes both templates through the command line, as an operator would. The caller must call remove(). */
export async function makeTemplates(serverUrl: string, signal: AbortSignal): Promise<Templates> {
  const template = `${TEMPLATE_PREFIX}${randomBytes(6).toString('hex')}`
  const folder = await mkdtemp(join(tmpdir(), 'prompt-signals-test-'))
  const remove = async () => {
    await rm(folder, { recursive: true, force: true })
    await dropDatabases(serverUrl, template)
  }
  try {
    const templateFolder = join(folder, 'template')
    await withAdmin(serverUrl, (sql) => sql`create database ${sql(template)} template template0 encoding 'UTF8'`)
    await migrate({ DATABASE_URL: urlOfDatabase(serverUrl, template) }, signal)
    // A template that has connections cannot be copied.
    await withAdmin(serverUrl, (sql) => sql`alter database ${sql(template)} with allow_connections false`)
    await migrate({ DATA_DIR: templateFolder }, signal)
    return { env: { TEST_TEMPLATE: template, TEST_TEMPLATE_DIR: templateFolder }, remove }
  } catch (error) {
    await remove()
    throw error
  }
}

/** Names carry the template's, so that the end of a run finds its own databases and no others. */
export function nameOfCopy(template: string): string {
  return `${copiesPrefix(template)}${randomBytes(6).toString('hex')}`
}

export function urlOfDatabase(serverUrl: string, name: string): string {
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

/** One connection to the server, only ever used to create, alter and drop databases of this run. */
export async function withAdmin<T>(serverUrl: string, use: (sql: postgres.Sql) => PromiseLike<T>): Promise<T> {
  const sql = postgres(serverUrl, { max: 1, onnotice: () => {} })
  try {
    return await use(sql)
  } finally {
    await sql.end({ timeout: 5 })
  }
}

function copiesPrefix(template: string): string {
  return `${template.replace(TEMPLATE_PREFIX, 'ps_test_')}_`
}

async function dropDatabases(serverUrl: string, template: string): Promise<void> {
  await withAdmin(serverUrl, async (sql) => {
    const rows = await sql<{ datname: string }[]>`
      select datname from pg_database where datname = ${template} or starts_with(datname, ${copiesPrefix(template)})`
    for (const { datname } of rows) await sql`drop database if exists ${sql(datname)} with (force)`
  })
}

async function migrate(settings: Record<string, string>, signal: AbortSignal): Promise<void> {
  const child = Bun.spawn([process.execPath, '--no-env-file', 'src/main.ts', 'migrate'], {
    cwd: ROOT,
    env: { ...cleanEnvironment(), ...settings },
    stdio: ['ignore', 'inherit', 'inherit'],
    signal,
  })
  const code = await child.exited
  if (code !== 0)
    throw new Error(`migrating the test template failed with exit code ${code} (${Object.keys(settings)})`)
}
