import { randomBytes } from 'node:crypto'
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { withPostgres } from './services.ts'
import { copyDatabase, nameOfCopy, type TemplateTenants, urlOfDatabase } from './templates.ts'
import type { Tenant } from './tenant.ts'

export interface TestDatabase {
  settings: { DATABASE_URL?: string; DATA_DIR?: string }
  close(): Promise<void>
}

export const engine = readEngine()

/** A migrated database without rows: its URL on Postgres, its data directory on the embedded engine. */
export const createDatabase = (): Promise<TestDatabase> => copyTemplate('TEST_TEMPLATE')

/** The same with one tenant, whose limit is 1,000,000: commands that create one take three processes. */
export async function createDatabaseWithTenant(): Promise<TestDatabase & { tenant: Tenant }> {
  const tenants: TemplateTenants = JSON.parse(required('TEST_TENANTS'))
  return { ...(await copyTemplate('TEST_TENANT_TEMPLATE')), tenant: tenants[engine] }
}

/** The same for tests of the embedded engine itself, on whichever engine the others run. */
export const createDataDir = async (): Promise<string> =>
  (await copyEmbedded(required('TEST_TEMPLATE_DIR'))).settings.DATA_DIR as string

/** A database without a schema; on the embedded engine, the data directory does not exist yet. */
export async function createEmptyDatabase(): Promise<TestDatabase> {
  if (engine === 'postgres') return copyPostgres('template0')
  const folder = await createFolderOfCopy(required('TEST_TEMPLATE_DIR'))
  return dataDirIn(folder)
}

export function redisUrl(): string {
  return required('TEST_REDIS_URL')
}

/** Different at every call, because all test files share one Redis. */
export function redisPrefix(): string {
  return `test-${randomBytes(6).toString('hex')}:`
}

/** For what is not about a slow Redis: on a busy machine an answer may come later than the service waits for it. */
export const patientRedis = { commandTimeoutMs: 10_000 }

const copyTemplate = (template: 'TEST_TEMPLATE' | 'TEST_TENANT_TEMPLATE'): Promise<TestDatabase> =>
  engine === 'postgres' ? copyPostgres(required(template)) : copyEmbedded(required(`${template}_DIR`))

async function copyPostgres(template: string): Promise<TestDatabase> {
  const serverUrl = required('TEST_DATABASE_URL')
  const name = nameOfCopy(required('TEST_TEMPLATE'))
  await copyDatabase(serverUrl, template, name)
  return {
    settings: { DATABASE_URL: urlOfDatabase(serverUrl, name) },
    close: async () => {
      // By force: a test of a crashed server leaves its connections open.
      await withPostgres(serverUrl, (sql) => sql`drop database if exists ${sql(name)} with (force)`)
    },
  }
}

async function copyEmbedded(template: string): Promise<TestDatabase> {
  const folder = await createFolderOfCopy(template)
  await cp(template, join(folder, 'data'), { recursive: true })
  return dataDirIn(folder)
}

/** Beside the template, so that the end of the run removes what a test has left. */
const createFolderOfCopy = (template: string): Promise<string> => mkdtemp(join(dirname(template), 'copy-'))

const dataDirIn = (folder: string): TestDatabase => ({
  settings: { DATA_DIR: join(folder, 'data') },
  close: () => rm(folder, { recursive: true, force: true }),
})

function readEngine(): 'postgres' | 'embedded' {
  const name = required('TEST_ENGINE')
  if (name !== 'postgres' && name !== 'embedded')
    throw new Error(`TEST_ENGINE is ${name}, neither postgres nor embedded`)
  return name
}

function required(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set; the test runner sets it: bun run test [file …]`)
  return value
}
