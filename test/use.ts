// Set-up that test files share. Each function registers hooks and returns an object that is filled before the tests run,
// so read its fields inside tests and hooks, never while the file loads. Hooks run in the order in which they are
// registered: an afterAll that needs the service or the binary stands before these.
import { afterAll, beforeAll, beforeEach, expect } from 'bun:test'
import type { Db } from '../src/db/client.ts'
import { scopes } from '../src/lib/scopes.ts'
import { type Client, createClient } from './client.ts'
import { createDatabase, createDatabaseWithTenant, type TestDatabase } from './harness.ts'
import { createOperator, type Operator, type Server, type Settings, startServer } from './program.ts'
import { type ServiceOptions, startService, type TestService } from './service.ts'
import { openDb, type Tenant } from './tenant.ts'

let shared: Promise<TestService> | undefined

/** The service that all files of a worker share: tests are isolated by their tenants. The end of the run drops its database. */
export function shareService(): Promise<TestService> {
  shared ??= startService()
  return shared
}

function fill<T extends object>(create: () => Promise<T>, hook = beforeAll): T {
  const filled = {} as T
  hook(async () => {
    Object.assign(filled, await create())
  })
  return filled
}

/** The shared service; its clock is reset after the file. */
export function useService(): TestService {
  const service = fill(shareService)
  afterAll(() => service.clock.reset())
  return service
}

/** A service only for this file: for tests of settings, of all rows of a table, or of what happens when it breaks. */
export function useOwnService(options?: ServiceOptions): TestService {
  const service = fill(() => startService(options))
  afterAll(() => service.close())
  return service
}

/** A tenant for all tests of the file. */
export const useTenant = (service: TestService, monthlyLimit?: number): Tenant =>
  fill(() => service.createTenant(monthlyLimit))

/** Another tenant for each test. */
export const useNewTenant = (service: TestService, monthlyLimit?: number): Tenant =>
  fill(() => service.createTenant(monthlyLimit), beforeEach)

/** A key of the tenant with every scope. */
export const useAdmin = (service: TestService, tenant: Tenant, hook = beforeAll): { key: string; id: string } =>
  fill(() => service.createKey(tenant, [...scopes]), hook)

export function useDatabase(): TestDatabase {
  const database = fill(createDatabase)
  afterAll(() => database.close())
  return database
}

/** The same, opened by the test itself. */
export function useOpenDatabase(): Db {
  const opened = fill(async () => {
    const database = await createDatabase()
    const db = await openDb(database.settings, { queryTimeoutMs: 4_500, maxConnections: 4 })
    return { ...db, close: () => db.close().then(database.close) }
  })
  afterAll(() => opened.close())
  return opened
}

export type Program = { server: Server; client: Client; operator: Operator; tenant: Tenant; settings: Settings }

/**
 * The binary, serving a database with one tenant, whose limit is 1,000,000; a client of it; and an operator who runs
 * commands beside it. The file fails when the binary does not stop cleanly.
 */
export function useProgram(more: () => Settings | Promise<Settings> = () => ({})): Program {
  const program = { server: {}, client: {}, operator: {}, tenant: {}, settings: {} } as Program
  let database: TestDatabase
  beforeAll(async () => {
    const { tenant, ...own } = await createDatabaseWithTenant()
    database = own
    Object.assign(program.tenant, tenant)
    Object.assign(program.settings, database.settings)
    Object.assign(program.operator, createOperator(database.settings))
    Object.assign(program.server, await startServer({ ...database.settings, ...(await more()) }))
    Object.assign(program.client, await createClient(program.server.url))
  })
  afterAll(async () => {
    expect(await program.server.stop()).toBe(0)
    await database.close()
  })
  return program
}
