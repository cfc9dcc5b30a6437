import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ServiceError } from '../../src/errors.ts'
import { createAdmission } from '../../src/limit/admit.ts'
import { createGate } from '../../src/limit/gate.ts'
import { setPlan } from '../../src/orgs/manage.ts'
import type { Prompt } from '../../src/prompts/find.ts'
import { createBatchRecorder } from '../../src/signals/batch.ts'
import { createSignalRecorder } from '../../src/signals/record.ts'
import { startService, type TestService } from '../service.ts'

const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)

let service: TestService

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

type Value = 'positive' | 'negative'
type Sent = { value: Value; key: string | null }
type Step =
  | { kind: 'single'; tenant: 0 | 1; signal: Sent }
  | { kind: 'batch'; tenant: 0 | 1; signals: Sent[] }
  | { kind: 'plan'; tenant: 0 | 1; limit: number }
  | { kind: 'flush'; tenant: 0 | 1 }

const tenant = fc.constantFrom(0 as const, 1 as const)
const signal = fc.record<Sent>({
  value: fc.constantFrom('positive', 'positive', 'negative'),
  key: fc.constantFrom(null, null, 'a', 'b', 'c', 'd'),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('single' as const), tenant, signal }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('batch' as const),
      tenant,
      signals: fc.array(signal, { minLength: 1, maxLength: 8 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('plan' as const), tenant, limit: fc.integer({ min: 0, max: 25 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('flush' as const), tenant }) },
)

/** The rules of one organisation, without storage, batches or Redis. */
class Model {
  used = 0
  private readonly keys = new Map<string, Value>()
  constructor(public limit: number) {}

  /** A key binds within a batch even if its first signal is refused: the rest of the batch is compared with it. */
  send(sent: Sent[]): string[] {
    const inBatch = new Map<string, { value: Value; outcome: string }>()
    return sent.map(({ value, key }) => {
      const first = key === null ? undefined : inBatch.get(key)
      if (first) {
        if (first.value !== value) return 'conflict'
        return first.outcome === 'recorded' ? 'replayed' : first.outcome
      }
      const outcome = this.sendOne(value, key)
      if (key !== null) inBatch.set(key, { value, outcome })
      return outcome
    })
  }

  private sendOne(value: Value, key: string | null): string {
    const known = key === null ? undefined : this.keys.get(key)
    if (known !== undefined) return known === value ? 'replayed' : 'conflict'
    if (this.used >= this.limit) return `refused ${this.used} of ${this.limit}`
    this.used += 1
    if (key !== null) this.keys.set(key, value)
    return 'recorded'
  }
}

const nameOf = ({ code, context }: Pick<ServiceError, 'code' | 'context'>): string =>
  code === 'rate_limited' ? `refused ${context.used} of ${context.limit}` : 'conflict'

async function play(limits: [number, number], steps: Step[]): Promise<void> {
  const { db, findPrompt, verifyKey } = service.services
  const admission = createAdmission(db, createGate(service.redis))
  // This is called when listening begins: from then on refusals are cached.
  admission.forgetRefusals()
  const singles = createSignalRecorder(db, admission, service.clock)
  const batches = createBatchRecorder(db, admission)
  const at = new Date('2030-01-28T23:59:59.999Z')
  service.clock.set(at.toISOString())
  const later = Number.POSITIVE_INFINITY

  const tenants = await Promise.all(
    limits.map(async (limit) => {
      const { org, key, prompt } = await service.createTenant(limit)
      const { organisationId } = await verifyKey(`Bearer ${key}`)
      return { org, prompt: await findPrompt(organisationId, prompt), model: new Model(limit) }
    }),
  )

  const sendSingle = (prompt: Prompt, { value, key }: Sent): Promise<string> =>
    singles
      .record(prompt, { value, metadata: null, idempotencyKey: key }, later)
      .then(({ outcome, used, limit }) => (outcome === 'refused' ? `refused ${used} of ${limit}` : outcome), nameOf)

  async function sendBatch(prompt: Prompt, sent: Sent[]): Promise<string[]> {
    const items = sent.map(({ value, key }) => ({ value, metadata: null, idempotencyKey: key, createdAt: at }))
    const { results } = await batches.record(prompt, items, at, later)
    return results.map((result) => {
      if ('error' in result) return nameOf(result.error)
      return result.isReplayed ? 'replayed' : 'recorded'
    })
  }

  async function take(one: Step): Promise<void> {
    const { org, prompt, model } = tenants[one.tenant] as (typeof tenants)[number]
    if (one.kind === 'single') expect([await sendSingle(prompt, one.signal)]).toEqual(model.send([one.signal]))
    else if (one.kind === 'batch') expect(await sendBatch(prompt, one.signals)).toEqual(model.send(one.signals))
    else if (one.kind === 'flush') await service.testRedis.del(`signals:{${prompt.organisationId}}:2030-01`)
    else {
      model.limit = one.limit
      await setPlan(db, service.clock, org, 'free', one.limit)
      admission.forgetRefusals(prompt.organisationId)
    }
  }

  // The steps of a tenant follow each other; those of the two run beside each other.
  await Promise.all(
    ([0, 1] as const).map(async (own) => {
      for (const one of steps) if (one.tenant === own) await take(one)
    }),
  )
  for (const { prompt, model } of tenants) {
    const [row] = await db.sql<{ used: number; rows: number }>`
      select coalesce(min(u.used), 0) as used,
        (select count(*) from signals where organisation_id = ${prompt.organisationId}) as rows
      from signal_usage u where u.organisation_id = ${prompt.organisationId}`
    expect(row).toEqual({ used: model.used, rows: model.used })
  }
}

test(`any mix of single signals and batches of two organisations follows the limit of each (TEST_SEED=${seed})`, async () => {
  const limit = fc.integer({ min: 0, max: 20 })
  await fc.assert(fc.asyncProperty(fc.tuple(limit, limit), fc.array(step, { minLength: 5, maxLength: 30 }), play), {
    numRuns: 60,
    seed,
  })
})
