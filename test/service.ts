// The service inside the test's own process, over real HTTP, with a clock that the test can set.
import { randomBytes } from 'node:crypto'
import { Redis } from 'ioredis'
import { createApp } from '../src/app.ts'
import type { Clock } from '../src/clock.ts'
import { readConfig } from '../src/config.ts'
import { openDatabase } from '../src/db/open.ts'
import { openRedis } from '../src/db/redis.ts'
import { createServices, type Services } from '../src/deps.ts'
import { recordEntry } from '../src/history/record.ts'
import type { NewHistoryEntry } from '../src/history/schema.ts'
import { crashResponse } from '../src/http/middleware.ts'
import { createKey } from '../src/keys/manage.ts'
import type { Scope } from '../src/lib/scopes.ts'
import { createLog } from '../src/log.ts'
import { requireOrganisation } from '../src/orgs/manage.ts'
import { listen } from '../src/platform.ts'
import { requirePrompt } from '../src/prompts/find.ts'
import { createPrompt } from '../src/prompts/manage.ts'
import { type Client, createClient } from './client.ts'
import { createDatabase, patientRedis, redisPrefix, redisUrl, type TestDatabase } from './harness.ts'
import { eventually } from './program.ts'
import { insertTenant, type Tenant } from './tenant.ts'

export type { Tenant } from './tenant.ts'

/** Runs like the system's until it is set, and again after a reset. */
export type TestClock = Clock & { set(instant: string): void; reset(): void }

type NewKey = Parameters<typeof createKey>[3]
type NewPrompt = Parameters<typeof createPrompt>[3]

export type TestService = Client & {
  url: string
  services: Services
  clock: TestClock
  redis: ReturnType<typeof openRedis>
  /** The same keys, for the test itself: waits however long a loaded machine takes. */
  testRedis: Redis
  createTenant(monthlyLimit?: number): Promise<Tenant>
  /** A key with these scopes, or the default ones. */
  createKey(tenant: { org: string }, scopes?: Scope[], more?: Partial<NewKey>): ReturnType<typeof createKey>
  /** Returns the id of the new prompt. */
  createPrompt(tenant: { org: string }, name: string, more?: Partial<NewPrompt>): Promise<string>
  addHistory(prompt: string, entries: NewHistoryEntry[]): Promise<void>
  close(): Promise<void>
}

/** An entry of a new commit. */
export const entry = (more: object = {}) => ({
  action: 'deployed' as const,
  user: { name: 'Ada', email: 'ada@example.com' },
  commit_sha: `c0ffee${randomBytes(8).toString('hex')}`,
  branch_name: 'main',
  ...more,
})

export function createTestClock(): TestClock {
  let fixed: Date | undefined
  return {
    now: () => fixed ?? new Date(),
    set: (instant) => {
      fixed = new Date(instant)
    },
    reset: () => {
      fixed = undefined
    },
  }
}

/** What of the settings a test may choose, as it is written in the environment. */
type Limits = {
  TRUSTED_PROXIES?: string
  RATE_LIMIT_PER_KEY?: string
  RATE_LIMIT_PER_ADDRESS?: string
  WEBHOOK_ALLOWED_HOSTS?: string
}

export type ServiceOptions = {
  queryTimeoutMs?: number
  limits?: Limits
  /** Of a database that the caller removes. */
  settings?: TestDatabase['settings']
}

/** Listens on a free port. */
export const serve = (services: Services) => listen(createApp(services), crashResponse, { host: '127.0.0.1', port: 0 })

/** A service with its own database; most files share one: see use.ts. */
export async function startService(options: ServiceOptions = {}): Promise<TestService> {
  const { queryTimeoutMs = 4_500, limits = {}, settings } = options
  const database = settings ? { settings, close: async () => {} } : await createDatabase()
  const config = readConfig({}, { ...database.settings, ...limits })
  const db = await openDatabase(config, { queryTimeoutMs, maxConnections: 10, whenInUse: 'fail' })
  const keyPrefix = redisPrefix()
  const redis = openRedis(redisUrl(), keyPrefix, patientRedis)
  // Until then every command fails immediately.
  await eventually(() => redis.status, 'ready')
  const testRedis = new Redis(redisUrl(), { keyPrefix })
  const clock = createTestClock()
  const services = createServices({ db, redis, clock, log: createLog('silent') }, config)
  const listener = serve(services)
  const client = await createClient(listener.url)
  return {
    ...client,
    url: listener.url,
    services,
    clock,
    redis,
    testRedis,
    createTenant: (monthlyLimit) => insertTenant(db, clock, monthlyLimit),
    createKey: async ({ org }, scopes, more) => {
      const given = { name: 'test', ...(scopes && { scopes }), ...more }
      return createKey(db, clock, await requireOrganisation(db, org), given)
    },
    async createPrompt({ org }, name, more) {
      const { id } = await createPrompt(db, clock, await requireOrganisation(db, org), { name, ...more })
      return id
    },
    async addHistory(prompt, entries) {
      const found = await requirePrompt(db.sql, prompt)
      for (const one of entries) await recordEntry(db, clock, found, one)
    },
    async close() {
      await listener.stop()
      await services.close()
      testRedis.disconnect()
      await database.close()
    },
  }
}
