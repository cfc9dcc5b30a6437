// Migrated databases of each engine, made once a run and copied by the tests: an empty one, and one with a tenant.
import { randomBytes } from 'node:crypto'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemClock } from '../src/clock.ts'
import { cleanEnvironment } from './environment.ts'
import { withPostgres } from './services.ts'
import { insertTenant, openDb, type Tenant } from './tenant.ts'

export type TemplateTenants = { postgres: Tenant; embedded: Tenant }

const TEMPLATE_PREFIX = 'ps_template_'
const MONTHLY_LIMIT = 1_000_000

/** Migrates through the command line, as an operator would. The caller must call remove(). */
export async function makeTemplates(serverUrl: string, signal: AbortSignal) {
  const empty = `${TEMPLATE_PREFIX}${randomBytes(6).toString('hex')}`
  const withTenant = nameOfCopy(empty)
  const folder = await mkdtemp(join(tmpdir(), 'prompt-signals-test-'))
  /** Removes the templates and every copy of them that a test left behind. */
  const remove = async () => {
    await rm(folder, { recursive: true, force: true })
    await dropDatabases(serverUrl, empty)
  }
  try {
    await withPostgres(serverUrl, (sql) => sql`create database ${sql(empty)} template template0 encoding 'UTF8'`)
    await migrate({ DATABASE_URL: urlOfDatabase(serverUrl, empty) }, signal)
    await copyDatabase(serverUrl, empty, withTenant)
    const emptyFolder = join(folder, 'template')
    const folderWithTenant = join(folder, 'with-tenant')
    await migrate({ DATA_DIR: emptyFolder }, signal)
    await cp(emptyFolder, folderWithTenant, { recursive: true })
    const tenants: TemplateTenants = {
      postgres: await addTenant({ DATABASE_URL: urlOfDatabase(serverUrl, withTenant) }),
      embedded: await addTenant({ DATA_DIR: folderWithTenant }),
    }
    // A template that has connections cannot be copied.
    for (const name of [empty, withTenant]) {
      await withPostgres(serverUrl, (sql) => sql`alter database ${sql(name)} with allow_connections false`)
    }
    const env = {
      TEST_TEMPLATE: empty,
      TEST_TEMPLATE_DIR: emptyFolder,
      TEST_TENANT_TEMPLATE: withTenant,
      TEST_TENANT_TEMPLATE_DIR: folderWithTenant,
      TEST_TENANTS: JSON.stringify(tenants),
    }
    return { env, remove }
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

export async function copyDatabase(serverUrl: string, template: string, name: string): Promise<void> {
  await withPostgres(serverUrl, (sql) => sql`create database ${sql(name)} template ${sql(template)} encoding 'UTF8'`)
}

function copiesPrefix(template: string): string {
  return `${template.replace(TEMPLATE_PREFIX, 'ps_test_')}_`
}

async function dropDatabases(serverUrl: string, template: string): Promise<void> {
  await withPostgres(serverUrl, async (sql) => {
    const rows = await sql<{ datname: string }[]>`
      select datname from pg_database where datname = ${template} or starts_with(datname, ${copiesPrefix(template)})`
    for (const { datname } of rows) await sql`drop database if exists ${sql(datname)} with (force)`
  })
}

async function addTenant(settings: Record<string, string>): Promise<Tenant> {
  const db = await openDb(settings)
  return insertTenant(db, systemClock, MONTHLY_LIMIT).finally(db.close)
}

async function migrate(settings: Record<string, string>, signal: AbortSignal): Promise<void> {
  const child = Bun.spawn([process.execPath, '--no-env-file', 'src/main.ts', 'migrate'], {
    cwd: join(import.meta.dir, '..'),
    env: { ...cleanEnvironment(), ...settings },
    stdio: ['ignore', 'inherit', 'inherit'],
    signal,
  })
  const code = await child.exited
  if (code !== 0)
    throw new Error(`migrating the test template failed with exit code ${code} (${Object.keys(settings)})`)
}
