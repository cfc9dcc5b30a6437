import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { scanMetadata } from '../../src/signals/metadata.ts'
import { startService, type TestService } from '../service.ts'

let service: TestService

beforeAll(async () => {
  service = await startService()
})

afterAll(() => service.close())

const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)

const digits = fc.integer({ min: 1, max: 400 }).map((length) => '7'.repeat(length))
const number = fc
  .record({
    sign: fc.constantFrom('', '-'),
    whole: fc.oneof(fc.constant('0'), digits),
    fraction: fc.oneof(
      fc.constant(''),
      digits.map((text) => `.${text}`),
    ),
    exponent: fc.oneof(
      fc.constant(''),
      fc.constantFrom(131_070, 131_071, 131_072, -16_382, -16_383, -16_384, 10 ** 12, 0).map((n) => `e${n}`),
      fc.integer({ min: -20_000, max: 140_000 }).map((n) => (n < 0 ? `E${n}` : `E+${n}`)),
    ),
  })
  .map(({ sign, whole, fraction, exponent }) => sign + whole + fraction + exponent)

const string = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 8 }).map((text) => JSON.stringify(text)),
  fc
    .array(fc.constantFrom('\\u0000', '\\ud83d', '\\ude00', '\\\\u0000', '\\u00e9', 'a', '\\"', ' '), { maxLength: 6 })
    .map((parts) => `"${parts.join('')}"`),
)

const { json } = fc.letrec<{ json: string; list: string; object: string }>((tie) => ({
  json: fc.oneof({ maxDepth: 4 }, number, string, fc.constantFrom('true', 'false', 'null'), tie('list'), tie('object')),
  list: fc.array(tie('json'), { maxLength: 4 }).map((items) => `[ ${items.join(' ,')}]`),
  object: fc
    .array(fc.tuple(string, tie('json')), { maxLength: 4 })
    .map((members) => `{${members.map(([name, value]) => `${name} :${value}`).join(', ')} }`),
}))

test(`whatever the scan lets pass, Postgres keeps; what it refuses, Postgres refuses too (TEST_SEED=${seed})`, async () => {
  const texts = fc.sample(
    fc.array(fc.tuple(string, json), { maxLength: 3 }).map((members) => `{${members.map((m) => m.join(':')).join()}}`),
    { numRuns: 3_000, seed },
  )
  let kept = 0
  for (const text of texts) {
    const { raw, problems } = scanMetadata(`{"value":"positive","metadata":${text},"x":1}`)
    expect(raw).toBe(text)
    const accepted = await service.services.db.sql`select ${text}::text::jsonb`.then(
      () => true,
      () => false,
    )
    expect({ text, accepted }).toEqual({ text, accepted: problems.length === 0 })
    if (accepted) kept += 1
  }
  expect(kept).toBeGreaterThan(300)
  expect(kept).toBeLessThan(2_700)
})
