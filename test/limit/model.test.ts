import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ServiceError } from '../../src/errors.ts'
import { type Admission, createAdmission } from '../../src/limit/admit.ts'
import { createGate } from '../../src/limit/gate.ts'
import { setPlan } from '../../src/orgs/manage.ts'
import { createSignalRecorder, type SignalRecorder } from '../../src/signals/record.ts'
import { startService, type TestService } from '../service.ts'

const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)
const months = ['2030-01', '2030-02', '2030-03', '2030-12', '2031-01', '2032-02']

let service: TestService

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

type Step =
  | { kind: 'create'; number: number }
  | { kind: 'retry'; key: string; value: 'positive' | 'negative'; number: number }
  | { kind: 'crash'; lost: number }
  | { kind: 'flush' }
  | { kind: 'plan'; limit: number }
  | { kind: 'turn' }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('create' as const), number: fc.integer({ min: 1, max: 6 }) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('retry' as const),
      key: fc.constantFrom('a', 'b', 'c', 'd'),
      value: fc.constantFrom('positive' as const, 'positive' as const, 'negative' as const),
      number: fc.integer({ min: 1, max: 4 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('crash' as const), lost: fc.integer({ min: 0, max: 5 }) }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'flush' as const }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('plan' as const), limit: fc.integer({ min: 0, max: 15 }) }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'turn' as const }) },
)

/** The rules, without storage, batches, Redis or failures. */
class Model {
  used = 0
  month = 0
  readonly keys = new Map<string, string>()
  constructor(public limit: number) {}
  create(key?: string, value = 'positive'): string {
    const known = key === undefined ? undefined : this.keys.get(key)
    if (known !== undefined) return known === value ? 'replayed' : 'conflict'
    if (this.used >= this.limit) return `refused ${this.used} of ${this.limit}`
    this.used += 1
    if (key !== undefined) this.keys.set(key, value)
    return 'recorded'
  }
}

async function play(limit: number, steps: Step[]): Promise<void> {
  const { db, findPrompt, verifyKey } = service.services
  const tenant = await service.createTenant(limit)
  const { organisationId } = await verifyKey(`Bearer ${tenant.key}`)
  const prompt = await findPrompt(organisationId, tenant.prompt)
  const model = new Model(limit)
  let admission = {} as Admission
  const start = (): SignalRecorder => {
    admission = createAdmission(db, createGate(service.redis))
    // This is called when listening begins: from then on refusals are cached.
    admission.forgetRefusals()
    return createSignalRecorder(db, admission, service.clock)
  }
  const gateKey = () => `signals:{${organisationId}}:${months[model.month]}`
  const turnTo = (month: number) => service.clock.set(`${months[month]}-28T23:59:59.999Z`)
  let recorder = start()
  turnTo(0)

  const record = (idempotencyKey: string | null, value: 'positive' | 'negative') =>
    recorder.record(prompt, { value, metadata: null, idempotencyKey }, Number.POSITIVE_INFINITY).then(
      ({ outcome, used, limit }) => (outcome === 'refused' ? `refused ${used} of ${limit}` : outcome),
      (error: ServiceError) => (error.code === 'validation_error' ? 'conflict' : error.code),
    )

  for (const one of steps) {
    if (one.kind === 'create' || one.kind === 'retry') {
      const key = one.kind === 'retry' ? one.key : undefined
      const value = one.kind === 'retry' ? one.value : 'positive'
      const expected = Array.from({ length: one.number }, () => model.create(key, value))
      const found = await Promise.all(expected.map(() => record(key ?? null, value)))
      expect(found.sort()).toEqual(expected.sort())
    } else if (one.kind === 'crash') {
      // What a process took from the gate and never wrote stays taken; all it knew is lost.
      await service.testRedis.incrby(gateKey(), one.lost)
      recorder = start()
    } else if (one.kind === 'flush') {
      await service.testRedis.del(gateKey())
    } else if (one.kind === 'plan') {
      model.limit = one.limit
      await setPlan(db, service.clock, tenant.org, 'free', one.limit)
      admission.forgetRefusals(organisationId)
    } else if (model.month < months.length - 1) {
      model.month += 1
      model.used = 0
      turnTo(model.month)
    }
    const [row] = await db.sql<{ used: number; rows: number }>`
      select coalesce(min(u.used), 0) as used, (
        select count(*) from signals
        where organisation_id = ${organisationId} and to_char(created_at at time zone 'utc', 'YYYY-MM') = ${months[model.month]}
      ) as rows
      from signal_usage u where u.organisation_id = ${organisationId} and to_char(u.month, 'YYYY-MM') = ${months[model.month]}`
    expect(row).toEqual({ used: model.used, rows: model.used })
  }
}

test(`any interleaving of creates, retries, crashes, flushes, plans and months follows the rules (TEST_SEED=${seed})`, async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 12 }), fc.array(step, { minLength: 5, maxLength: 25 }), play),
    { numRuns: 60, seed },
  )
})
