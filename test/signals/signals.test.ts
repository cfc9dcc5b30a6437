import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { ServiceError } from '../../src/errors.ts'
import { keepNumbers, maxDigits, writeMetadata } from '../../src/signals/metadata.ts'
import { invalid } from '../client.ts'
import { useService, useTenant } from '../use.ts'
import { countOf, postText } from './fixtures.ts'

const service = useService()
const tenant = useTenant(service, 100_000)

const post = (body: Bun.BodyInit, headers: Record<string, string> = {}) => postText(service, tenant, body, headers)

async function keptMetadata(id: number): Promise<string | null> {
  const [row] = await service.services.db.sql<{ metadata: string | null }>`
    select metadata::text as metadata from signals where id = ${id}`
  return row?.metadata ?? null
}

test('records a signal and returns its id, value and time', async () => {
  service.clock.set('2026-11-14T23:35:00.123Z')
  const answer = await service.postSignal(tenant.prompt, tenant.key, { value: 'negative', metadata: { a: 1 } })
  const data = { id: expect.any(Number), value: 'negative', created_at: '2026-11-14T23:35:00.123Z' }
  expect([answer.status, answer.body]).toEqual([201, { data }])
  const [row] = await service.services.db.sql`
    select s.value, s.metadata, s.created_at, p.public_id as prompt, o.public_id as org
    from signals s join prompts p on p.id = s.prompt_id join organisations o on o.id = s.organisation_id
    where s.id = ${answer.body.data.id}`
  expect(row).toEqual({
    value: 'negative',
    metadata: { a: 1 },
    created_at: new Date('2026-11-14T23:35:00.123Z'),
    prompt: tenant.prompt,
    org: tenant.org,
  })
})

test.each([
  ['application/json', 201],
  ['Application/JSON', 201],
  ['APPLICATION/JSON; charset=utf-8', 201],
  ['application/json;charset=UTF-8', 201],
  ['application/json ; x=y', 201],
  ['text/plain', 422],
  ['application/jsonp', 422],
  ['application/vnd.api+json', 422],
  ['multipart/form-data', 422],
  ['json', 422],
  ['', 422],
])('the content type %p is answered with %d', async (type, expected) => {
  const { status, body } = await post(new TextEncoder().encode('{"value":"positive"}'), { 'content-type': type })
  expect([status, body.error?.code]).toEqual([expected, expected === 422 ? 'validation_error' : undefined])
})

test.each([
  ['', ''],
  ['not json', 'value=positive'],
  ['cut off', '{"value":"positive"'],
  ['two values', '{"value":"positive"}{}'],
  ['null', 'null'],
  ['an array', '[{"value":"positive"}]'],
  ['no value', '{}'],
  ['value in capitals', '{"value":"Positive"}'],
  ['value with a blank', '{"value":"positive "}'],
  ['value 1', '{"value":1}'],
  ['the last of two values counts', '{"value":"positive","value":"maybe"}'],
  ['metadata null', '{"value":"positive","metadata":null}'],
  ['metadata an array', '{"value":"positive","metadata":[]}'],
  ['metadata a string', '{"value":"positive","metadata":"{}"}'],
  ['a very deep body', '['.repeat(500_000)],
  ['not UTF-8', Buffer.from('{"value":"positive","metadata":{"a":"\xff\xfe"}}', 'latin1')],
] as [string, Bun.BodyInit][])('rejects a body that is %s, and counts nothing', async (_, text) => {
  const before = await countOf(service, tenant)
  const { status, body } = await post(text)
  const details = expect.arrayContaining([{ path: expect.any(String), message: expect.any(String) }])
  const shown = { message: expect.any(String), details, request_id: expect.any(String) }
  expect([status, body]).toEqual([422, { error: { code: 'validation_error', ...shown } }])
  expect(await countOf(service, tenant)).toEqual(before)
})

test.each([
  ['{}'],
  ['{"big": 9223372036854775807, "bigger": 123456789012345678901234567890}'],
  ['{"a": 0.1000, "b": 1.0, "c": 0.1234567890123456789012345678901234567890}'],
  ['{"": {"\\u00e9": "\\ud83d\\ude00 \\"q\\" \\\\ \\/"}, "list": [null, true, false, [], {}]}'],
  ['{"metadata": {"value": "metadata"}}'],
  ['{"a":"\\"}","b":"\\\\"}'],
])('keeps the metadata %p with its exact value', async (metadata) => {
  // Unknown fields are ignored.
  const others = '"id":7,"created_at":"1999-01-01","__proto__":{}'
  const neighbours = `${others},"x":{"metadata":{"a":"\\u0000"}},"y":"}\\ud83d","z":1e999999`
  const { status, body } = await post(`{${neighbours},"value":"positive" , "metadata" : ${metadata} , "y":"}"}`)
  expect(status).toBe(201)
  const [row] = await service.services.db.sql<{ same: string }>`select ${metadata}::text::jsonb::text as same`
  expect(await keptMetadata(body.data.id)).toBe(row?.same as string)
})

test('of metadata given twice the last is kept', async () => {
  const { body } = await post('{"metadata":{"a":"\\u0000"},"value":"positive","\\u006detadata":{"b":2}}')
  expect(await keptMetadata(body.data.id)).toBe('{"b": 2}')
})

const nested = (depth: number) => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`
const sized = (bytes: number) => `{"a":"${'x'.repeat(bytes - 8)}"}`

test.each([
  ['16 KiB', sized(16_384), 201],
  ['a byte more than 16 KiB', sized(16_385), 422],
  ['16 KiB of two-byte letters', `{"a":"${'é'.repeat(8_188)}"}`, 201],
  ['more than 16 KiB of two-byte letters', `{"a":"${'é'.repeat(8_189)}"}`, 422],
  ['nested 32 deep', nested(32), 201],
  ['nested 33 deep', nested(33), 422],
  ['nested 32 deep in lists', `{"a":${'['.repeat(31)}${']'.repeat(31)}}`, 201],
  ['the largest number', '{"a":[1e131071]}', 201],
])('metadata of %s', async (_, metadata, expected) => {
  expect((await post(`{"value":"positive","metadata":${metadata}}`)).status).toBe(expected)
})

test.each<[string, ...string[]]>([
  ['{"a":{"b":["x","\\u0000"]}}', '/metadata/a/b/1'],
  ['{"a/b~":"\\ud800"}', '/metadata/a~1b~0'],
  ['{"a":"\\udc00\\ud800"}', '/metadata/a'],
  ['{"a":[{"\\u0000":1}]}', '/metadata/a/0/\0'],
  ['{"a":1e131072}', '/metadata/a'],
  ['{"a":[1,2,-1e-16384]}', '/metadata/a/2'],
  ['{"a":1e999999999999}', '/metadata/a'],
  ['{"a":0e-99999}', '/metadata/a'],
  ['{"a":"\\u0000","b":2,"c":"\\ud83d"}', '/metadata/a', '/metadata/c'],
  ['{"a":[1e131071,1e131071,1e131071]}', '/metadata/a/1', '/metadata/a/2'],
  ['{"b~/":"\\u0000","\\udbff":[9,"\\ude00"]}', '/metadata/b~0~1', '/metadata/\udbff', '/metadata/\udbff/1'],
  [`{"a":${'['.repeat(32)}${']'.repeat(32)}}`, `/metadata/a${'/0'.repeat(31)}`],
  [`{"a":${'['.repeat(33)}${']'.repeat(33)}}`, `/metadata/a${'/0'.repeat(31)}`],
  ['{"a":1},"m\\u0065tadata":{"b":"\\u0000"}', '/metadata/b'],
])('rejects what Postgres cannot keep, and names its place: %s', async (metadata, ...paths) => {
  expect(await post(`{"value":"positive","metadata":${metadata}}`)).toMatchObject(invalid(...paths))
})

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

/** The JSON that is stored; undefined if the metadata is rejected. */
function store(metadata: string): string | undefined {
  const body = `{"value":"positive","metadata":${metadata},"x":1}`
  try {
    return writeMetadata(keepNumbers(body, JSON.parse(body)).metadata)
  } catch (error) {
    expect(error).toBeInstanceOf(ServiceError)
    return undefined
  }
}

test(`what is let pass, Postgres keeps as sent and at a bounded size; what is rejected, Postgres rejects too or makes large (TEST_SEED=${seed})`, async () => {
  const members = fc.uniqueArray(fc.tuple(string, json), { maxLength: 3, selector: ([name]) => JSON.parse(name) })
  const objects = members.map((list) => `{${list.map((member) => member.join(':')).join()}}`)
  let kept = 0
  for (const text of fc.sample(objects, { numRuns: 2_000, seed })) {
    const stored = store(text) ?? null
    const found = await service.services.db.sql<{ size: number; isAsSent: boolean }>`
      select length(${text}::text::jsonb::text) as size, ${text}::text::jsonb::text = ${stored}::text::jsonb::text as "isAsSent"`.then(
      ([row]) => row,
      () => undefined,
    )
    if (stored === null) {
      expect(found?.size ?? Number.POSITIVE_INFINITY).toBeGreaterThan(maxDigits)
      continue
    }
    expect(found).toEqual({ size: expect.any(Number), isAsSent: true })
    expect(found?.size).toBeLessThan(maxDigits + 2 * text.length + 1)
    kept += 1
  }
  expect(kept).toBeGreaterThan(200)
  expect(kept).toBeLessThan(1_800)
})
