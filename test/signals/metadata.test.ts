import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { maxDigits, scanMetadata } from '../../src/signals/metadata.ts'
import { useService } from '../use.ts'

const service = useService()

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
    .uniqueArray(fc.tuple(string, tie('json')), { maxLength: 4, selector: ([name]) => JSON.parse(name) })
    .map((members) => `{${members.map(([name, value]) => `${name} :${value}`).join(', ')} }`),
}))

test(`what the scan lets pass, Postgres keeps at a bounded size; what it rejects, Postgres rejects too or makes large (TEST_SEED=${seed})`, async () => {
  const members = fc.uniqueArray(fc.tuple(string, json), { maxLength: 3, selector: ([name]) => JSON.parse(name) })
  const objects = members.map((list) => `{${list.map((member) => member.join(':')).join()}}`)
  let kept = 0
  for (const text of fc.sample(objects, { numRuns: 2_000, seed })) {
    const { raw, problems } = scanMetadata(`{"value":"positive","metadata":${text},"x":1}`)
    expect(raw).toBe(text)
    const size = await service.services.db.sql<{ size: number }>`
      select length(${text}::text::jsonb::text) as size`.then(
      ([row]) => row?.size,
      () => Number.POSITIVE_INFINITY,
    )
    if (problems.length > 0) expect(size).toBeGreaterThan(maxDigits)
    else expect(size).toBeLessThan(maxDigits + 2 * text.length + 1)
    if (problems.length === 0) kept += 1
  }
  expect(kept).toBeGreaterThan(200)
  expect(kept).toBeLessThan(1_800)
})

test('a list of numbers that would take megabytes when written out is rejected at the one that is too many', () => {
  const list = (length: number) => `{"metadata":{"a":[${Array(length).fill('1e131071')}],"b":[1e9999,true]}}`
  expect(scanMetadata(list(1)).problems).toEqual([])
  expect(scanMetadata(list(3)).problems.map(({ path }) => path)).toEqual(['/metadata/a/1', '/metadata/a/2'])
})
