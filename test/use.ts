// Set-up that test files share. Each function registers hooks and returns an object that is filled before the tests run,
// so read its fields inside tests and hooks, never while the file loads. Hooks run in the order in which they are
// registered: an afterAll that needs the service or the binary stands before these.
import { afterAll, beforeAll, beforeEach, expect, onTestFinished } from 'bun:test'
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

export type Database = { settings: Settings; operator: Operator; tenant: Tenant }

/**
 * A database without a server, and an operator who runs commands on it. It has a tenant if it is created with one. It is
 * one for the file, or with other hooks one for each test.
 */
export function useDatabase(
  create: () => Promise<TestDatabase & { tenant?: Tenant }> = createDatabase,
  [before, after] = [beforeAll, afterAll],
): Database {
  const database = { settings: {}, operator: {}, tenant: {} } as Database
  let close: TestDatabase['close']
  before(async () => {
    const created = await create()
    close = created.close
    Object.assign(database.settings, created.settings)
    Object.assign(database.operator, createOperator(created.settings))
    Object.assign(database.tenant, created.tenant)
  })
  after(() => close())
  return database
}

/** A database that the test itself has opened. */
export function useOpenDatabase(): Db {
  const opened = fill(async () => {
    const database = await createDatabase()
    const db = await openDb(database.settings, { queryTimeoutMs: 4_500, maxConnections: 4 })
    return { ...db, close: () => db.close().then(database.close) }
  })
  afterAll(() => opened.close())
  return opened
}

export type Program = Database & { server: Server; client: Client }

/**
 * The binary, serving a database with one tenant, whose limit is 1,000,000; a client of it; and an operator who runs
 * commands beside it. The file fails when the binary does not stop cleanly.
 */
export function useProgram(more: () => Settings | Promise<Settings> = () => ({})): Program {
  const { server, client } = { server: {}, client: {} } as Program
  afterAll(async () => expect(await server.stop()).toBe(0))
  const database = useDatabase(createDatabaseWithTenant)
  beforeAll(async () => {
    Object.assign(server, await startServer({ ...database.settings, ...(await more()) }))
    Object.assign(client, await createClient(server.url))
  })
  return { ...database, server, client }
}

/** An HTTP server until the end of the test. Returns its origin. */
export function serveInTest(fetch: (request: Request) => Response | Promise<Response>): string {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch })
  onTestFinished(() => server.stop(true))
  return server.url.origin
}

/** Closes what a test has opened when the test ends. */
export async function closeAfterTest<T extends { close(): unknown }>(opened: Promise<T>): Promise<T> {
  const resource = await opened
  onTestFinished(async () => void (await resource.close()))
  return resource
}
