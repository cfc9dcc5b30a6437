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
import { crashResponse } from '../src/http/middleware.ts'
import { createKey } from '../src/keys/manage.ts'
import { createLog } from '../src/log.ts'
import { createOrganisation } from '../src/orgs/manage.ts'
import { listen } from '../src/platform.ts'
import { requirePrompt } from '../src/prompts/find.ts'
import { createPrompt } from '../src/prompts/manage.ts'
import { type Client, createClient } from './client.ts'
import { createDatabase, patientRedis, redisPrefix, redisUrl } from './harness.ts'
import { eventually } from './program.ts'

export type TestClock = Clock & { set(instant: string): void }

export type Tenant = { org: string; key: string; keyId: string; prompt: string }

export type TestService = Client & {
  url: string
  services: Services
  clock: TestClock
  redis: ReturnType<typeof openRedis>
  /** The same keys, for the test itself: waits however long a loaded machine takes. */
  testRedis: Redis
  /** An organisation with a key and a prompt. */
  createTenant(monthlyLimit?: number): Promise<Tenant>
  addHistory(prompt: string, entries: object[]): Promise<void>
  close(): Promise<void>
}

/** An entry of a commit of its own. */
export const entry = (more: object = {}) => ({
  action: 'deployed',
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
  }
}

/** What of the settings a test may choose, as it is written in the environment. */
type Limits = { TRUSTED_PROXIES?: string; RATE_LIMIT_PER_KEY?: string; RATE_LIMIT_PER_ADDRESS?: string }

export async function startService({ queryTimeoutMs = 4_500, limits = {} as Limits } = {}): Promise<TestService> {
  const database = await createDatabase()
  const config = readConfig({}, { ...database.settings, ...limits })
  const db = await openDatabase(config, { queryTimeoutMs, maxConnections: 10, whenInUse: 'fail' })
  const keyPrefix = redisPrefix()
  const redis = openRedis(redisUrl(), keyPrefix, patientRedis)
  // Until then every command fails immediately.
  await eventually(() => redis.status, 'ready')
  const testRedis = new Redis(redisUrl(), { keyPrefix })
  const clock = createTestClock()
  const services = createServices({ db, redis, clock, log: createLog('silent') }, config)
  const listener = listen(createApp(services), crashResponse, '127.0.0.1', 0)
  const client = await createClient(listener.url)
  return {
    ...client,
    url: listener.url,
    services,
    clock,
    redis,
    testRedis,
    async createTenant(monthlyLimit) {
      const plan = { name: 'Test', plan: 'free', monthlyLimit: monthlyLimit ?? null }
      const { id: org } = await createOrganisation(db, clock, plan)
      const { id: keyId, key } = await createKey(db, clock, { org, name: 'test', expiresAt: null })
      const { id: prompt } = await createPrompt(db, clock, { org, name: 'test', id: null })
      return { org, key, keyId, prompt }
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
