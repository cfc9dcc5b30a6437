import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { ServiceError } from '../../src/errors.ts'
import { createAdmission } from '../../src/limit/admit.ts'
import { setPlan } from '../../src/orgs/manage.ts'
import { createBatchRecorder } from '../../src/signals/batch.ts'
import { createSignalRecorder } from '../../src/signals/record.ts'
import { inFullRun } from '../full.ts'
import { useService } from '../use.ts'

const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)
const months = ['2030-01', '2030-02', '2030-03', '2030-12', '2031-01', '2032-02']
const service = useService()

type Value = 'positive' | 'negative'
type Sent = { value: Value; key: string | null }
type TenantStep =
  | { kind: 'singles'; tenant: 0 | 1; signal: Sent; times: number }
  | { kind: 'batch'; tenant: 0 | 1; signals: Sent[] }
  | { kind: 'plan'; tenant: 0 | 1; limit: number }
  | { kind: 'flush'; tenant: 0 | 1 }
type Step = TenantStep | { kind: 'crash'; lost: number } | { kind: 'turn' }

const tenant = fc.constantFrom(0 as const, 1 as const)
const signal = fc.record<Sent>({
  value: fc.constantFrom('positive', 'positive', 'negative'),
  key: fc.constantFrom(null, null, 'a', 'b', 'c', 'd'),
})
const kind = <Kind extends string>(name: Kind) => fc.constant(name)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: kind('singles'), tenant, signal, times: fc.integer({ min: 1, max: 6 }) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: kind('batch'), tenant, signals: fc.array(signal, { minLength: 1, maxLength: 8 }) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: kind('plan'), tenant, limit: fc.integer({ min: 0, max: 20 }) }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('flush'), tenant }) },
  { weight: 2, arbitrary: fc.record({ kind: kind('crash'), lost: fc.integer({ min: 0, max: 5 }) }) },
  { weight: 1, arbitrary: fc.record({ kind: kind('turn') }) },
)

/** The rules of one organisation, without storage, batches, Redis or failures. */
class Model {
  used = 0
  private readonly keys = new Map<string, Value>()
  constructor(public limit: number) {}

  /** A key binds within a batch even if its first signal is refused: the rest of the batch is compared with it. */
  sendBatch(sent: Sent[]): string[] {
    const inBatch = new Map<string, { value: Value; outcome: string }>()
    return sent.map(({ value, key }) => {
      const first = key === null ? undefined : inBatch.get(key)
      if (first) {
        if (first.value !== value) return 'conflict'
        return first.outcome === 'recorded' ? 'replayed' : first.outcome
      }
      const outcome = this.send({ value, key })
      if (key !== null) inBatch.set(key, { value, outcome })
      return outcome
    })
  }

  send({ value, key }: Sent): string {
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

const later = Number.POSITIVE_INFINITY

async function play(limits: [number, number], steps: Step[]): Promise<void> {
  const { db, findPrompt, verifyKey } = service.services
  let month = 0
  const clock = { now: () => new Date(`${months[month]}-28T23:59:59.999Z`) }
  const start = () => {
    const recording = { db, admission: createAdmission(db, service.redis) }
    return { singles: createSignalRecorder(recording, clock), batches: createBatchRecorder(recording) }
  }
  let recorders = start()
  const tenants = await Promise.all(
    limits.map(async (limit) => {
      const { org, key, prompt } = await service.createTenant(limit)
      const { organisationId } = await verifyKey(`Bearer ${key}`)
      return { org, organisationId, prompt: await findPrompt(organisationId, prompt), model: new Model(limit) }
    }),
  )
  type PlayedTenant = (typeof tenants)[number]
  const gateKeyOf = ({ organisationId }: PlayedTenant) => `signals:{${organisationId}}:${months[month]}`

  const sendSingle = ({ prompt }: PlayedTenant, { value, key }: Sent): Promise<string> =>
    recorders.singles
      .record(prompt, { value, metadata: null, idempotencyKey: key }, later)
      .then(({ outcome, used, limit }) => (outcome === 'refused' ? `refused ${used} of ${limit}` : outcome), nameOf)

  async function sendBatch({ prompt }: PlayedTenant, sent: Sent[]): Promise<string[]> {
    const createdAt = clock.now()
    const items = sent.map(({ value, key }) => ({ value, metadata: null, idempotencyKey: key, createdAt }))
    const { results } = await recorders.batches(prompt, items, createdAt, later)
    return results.map((result) => {
      if ('error' in result) return nameOf(result.error)
      return result.isReplayed ? 'replayed' : 'recorded'
    })
  }

  async function take(one: TenantStep): Promise<void> {
    const own = tenants[one.tenant] as PlayedTenant
    if (one.kind === 'singles') {
      const expected = Array.from({ length: one.times }, () => own.model.send(one.signal))
      const found = await Promise.all(expected.map(() => sendSingle(own, one.signal)))
      expect(found.sort()).toEqual(expected.sort())
    } else if (one.kind === 'batch') {
      expect(await sendBatch(own, one.signals)).toEqual(own.model.sendBatch(one.signals))
    } else if (one.kind === 'flush') await service.testRedis.del(gateKeyOf(own))
    else {
      own.model.limit = one.limit
      await setPlan(db, clock, own.org, 'free', one.limit)
      // A refusal of the old limit holds for a moment, but not on a replica that has just started.
      recorders = start()
    }
  }

  /** The steps of a tenant follow each other; those of the two run at the same time. */
  const takeAll = (taken: TenantStep[]) =>
    Promise.all(
      ([0, 1] as const).map(async (own) => {
        for (const one of taken) if (one.tenant === own) await take(one)
      }),
    )

  async function checkRows(): Promise<void> {
    for (const { organisationId, model } of tenants) {
      const [row] = await db.sql<{ used: number; rows: number }>`
        select coalesce(min(u.used), 0) as used, (
          select count(*) from signals s
          where s.organisation_id = ${organisationId}
            and to_char(s.created_at at time zone 'utc', 'YYYY-MM') = ${months[month]}
        ) as rows
        from signal_usage u
        where u.organisation_id = ${organisationId} and to_char(u.month, 'YYYY-MM') = ${months[month]}`
      expect(row).toEqual({ used: model.used, rows: model.used })
    }
  }

  let pending: TenantStep[] = []
  for (const one of steps) {
    if (one.kind !== 'crash' && one.kind !== 'turn') {
      pending.push(one)
      continue
    }
    await takeAll(pending)
    pending = []
    await checkRows()
    if (one.kind === 'crash') {
      // What a process counted at the gate and never wrote stays counted, and everything it knew is lost.
      for (const own of tenants) await service.testRedis.incrby(gateKeyOf(own), one.lost)
      recorders = start()
    } else if (month < months.length - 1) {
      month += 1
      for (const { model } of tenants) model.used = 0
    }
  }
  await takeAll(pending)
  await checkRows()
}

test(`any interleaving of signals, batches, retries, crashes, flushes, plans and months follows the rules (TEST_SEED=${seed})`, async () => {
  const limit = fc.integer({ min: 0, max: 15 })
  await fc.assert(fc.asyncProperty(fc.tuple(limit, limit), fc.array(step, { minLength: 5, maxLength: 30 }), play), {
    numRuns: inFullRun(100, 40),
    seed,
  })
})
