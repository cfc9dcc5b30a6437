import { expect, spyOn, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { applyPatch } from 'diff'
import fc from 'fast-check'
import { formatDistance } from '../../src/console/parts/format.ts'
import { diffInTurn, unifiedDiff } from '../../src/history/diff.ts'
import { SharedCache } from '../../src/history/read.ts'
import { decodeInTurn } from '../../src/http/body.ts'
import { RequestContext } from '../../src/http/request_context.ts'
import { randomBase62, toBase62 } from '../../src/lib/base62.ts'
import { BoundedCache } from '../../src/lib/bounded_cache.ts'
import { nextTurn } from '../../src/lib/concurrency.ts'
import { parseJson, smallBody, splitLists } from '../../src/lib/json.ts'
import { openRest } from '../../src/lib/rest.ts'
import { parseInstant } from '../../src/lib/times.ts'
import { nullable } from '../../src/lib/typebox.ts'
import { createValidator } from '../../src/lib/validate.ts'

test('a full cache evicts the least recently used entry', () => {
  const cache = new BoundedCache<string, number>(2)
  cache.set('a', 1)
  cache.set('b', 2)
  cache.get('a')
  cache.set('c', 3)
  expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual([1, undefined, 3])
})

test('an owner fills a shared cache alone, and gives way when others need it, but never below its share', () => {
  const cache = new SharedCache<string, number, string>(100, (value) => value.length)
  const page = 'x'.repeat(5)
  const heldBy = (owner: string) =>
    Array.from({ length: 1_000 }, (_, key) => cache.get(owner, key)).filter(Boolean).length
  for (let key = 0; key < 20; key += 1) cache.set('large', key, page)
  expect(heldBy('large')).toBe(20)
  for (const owner of ['a', 'b', 'c']) for (const key of [1, 2, 3]) cache.set(owner, key, page)
  for (let key = 20; key < 1_000; key += 1) cache.set('large', key, page)
  expect(['a', 'b', 'c'].map(heldBy)).toEqual([3, 3, 3])
  expect(cache.get('large', 999)).toBe(page)
  for (let key = 10; key < 100; key += 1) cache.set('a', key, page)
  expect(['b', 'c'].map(heldBy)).toEqual([3, 3])
  expect(heldBy('large')).toBeGreaterThanOrEqual(4)
  expect(cache.size).toBe(['large', 'a', 'b', 'c'].reduce((sum, owner) => sum + heldBy(owner) * 5, 0))
  expect(cache.size).toBeLessThanOrEqual(100)
})

test('random base62 has the requested length and every letter', () => {
  const text = randomBase62(20_000)
  expect(text).toMatch(/^[0-9A-Za-z]{20000}$/)
  expect(new Set(text).size).toBe(62)
})

test('numbers fill base62 text from the right', () => {
  const texts = [0, 61, 62, 2 ** 32 - 1].map((number) => toBase62(number, 6))
  expect(texts).toEqual(['000000', '00000z', '000010', '4gfFC3'])
})

test.each([
  ['2026-11-14T23:35:00Z', '2026-11-14T23:35:00.000Z'],
  ['2026-11-14T23:35:00.123456+02:00', '2026-11-14T21:35:00.123Z'],
  ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
])('%s is an instant', (text, expected) => {
  expect(parseInstant(text)?.toISOString()).toBe(expected)
})

test.each([
  '',
  'now',
  '2026-11-14',
  '2026-11-14T23:35:00',
  '2026-02-30T00:00:00Z',
  '2027-02-29T00:00:00Z',
  '2026-13-01T00:00:00Z',
  '2026-00-10T00:00:00Z',
  '2026-01-00T00:00:00Z',
  '0000-01-01T00:00:00Z',
  '0001-01-01T00:00:00+14:00',
  '9999-12-31T23:59:59-01:00',
  '2026-01-01T25:00:00Z',
  '2026-01-01T00:60:00Z',
  '2026-01-01T00:00:00+99:00',
  ' 2026-11-14T23:35:00Z',
])('%p is no instant', (text) => {
  expect(parseInstant(text)).toBeUndefined()
})

test('a request that was given up does not continue', () => {
  const context = new RequestContext(new Request('http://localhost'))
  context.pauseDeadline(1_000, () => new Error('too slow'))
  context.settled = true
  expect(() => context.resumeDeadline()).toThrow('too slow')
})

const names = Type.Array(Type.String(), { maxItems: 10_000 })

test.each([
  [names, 0, 10_000],
  [nullable(names, ''), 0, 10_000],
  [names, 'x', 10_001],
])('what is wrong with a long list is found without reading all of it', (schema, item, length) => {
  let reads = 0
  const list = new Proxy(Array(length).fill(item), {
    get(target, name) {
      reads += 1
      return Reflect.get(target, name)
    },
  })
  expect(() => createValidator(schema, 'The list')(list)).toThrow('The list is not valid.')
  expect(reads).toBeLessThan(100)
})

test('each large body is parsed in another turn of the event loop, a small one immediately', async () => {
  let turn = 0
  const turns: number[] = []
  const decode = async (length: number) => {
    await decodeInTurn(new Uint8Array(length))
    turns.push(turn)
  }
  const decoded = Promise.all([...Array(3).fill(smallBody + 1), smallBody].map(decode))
  while (turns.length < 4) {
    await nextTurn()
    turn += 1
  }
  await decoded
  expect(turns[0]).toBe(0)
  expect(new Set(turns).size).toBe(4)
})

test('diffs leave turns of the event loop to other requests', async () => {
  const turns: number[] = []
  let turn = 0
  const texts = [0, 1].map((part) => Array.from({ length: 20_000 }, (_, line) => (line * (part + 3)) % 7).join('\n'))
  const compare = async () => {
    await diffInTurn('prompt.md', texts[0] as string, texts[1] as string)
    turns.push(turn)
  }
  const compared = Promise.all([compare(), compare(), compare()])
  while (turns.length < 3) {
    await nextTurn()
    turn += 1
  }
  await compared
  expect(new Set(turns).size).toBe(3)
})

const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
const padded = (json: string) => json.padStart(smallBody + 1)

test.each([
  ['nested too deep', nested(65)],
  ['with too many elements', `[${'1,'.repeat(75_000)}1]`],
  ['with too many lists', `[${'[],'.repeat(37_500)}[]]`],
  ['with too many fields', `{${Array.from({ length: 75_001 }, (_, index) => `"${index}":1`).join()}}`],
  ['that does not end', '['.repeat(100_000)],
])('a large body %s is rejected before it is parsed', (_, json) => {
  const parse = spyOn(JSON, 'parse')
  try {
    expect(() => parseJson(padded(json))).toThrow('The request body is not valid.')
    expect(parse).not.toHaveBeenCalled()
  } finally {
    parse.mockRestore()
  }
})

test.each([nested(64), `[${'1,'.repeat(74_000)}1]`, `["${'[{,\\"'.repeat(100_000)}", "\\\\", "["]`])(
  'a large body with few values is parsed, whatever its strings hold: %#',
  (json) => expect(parseJson(padded(json))).toEqual(JSON.parse(json)),
)

test('the elements of the lists of an object are those of JSON, wherever they are split', () => {
  const rejoin = (json: string) => {
    const { outer, elements } = splitLists(json, 1_000) ?? { outer: '', elements: [] }
    return JSON.parse(outer, function (this: unknown, _, value) {
      return Array.isArray(this) ? JSON.parse(elements[value] as string) : value
    })
  }
  const listed = fc.dictionary(fc.string(), fc.array(fc.json({ maxDepth: 4 })))
  fc.assert(
    fc.property(listed, fc.constantFrom('', ' ', '\n\t'), (lists, space) => {
      const fields = Object.entries(lists).map(
        ([name, items]) => `${JSON.stringify(name)}${space}:[${space}${items.join(`${space},${space}`)}${space}]`,
      )
      const json = `${space}{${fields.join()}}`
      expect(rejoin(json)).toEqual(JSON.parse(json))
    }),
  )
  expect(splitLists('{"a":[1,2,3]}', 3)?.elements).toEqual(['1', '2', '3'])
  expect(splitLists('{"a":[1,2,3,4]}', 3)).toBeNull()
})

const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000]
const now = new Date(2026, 10, 15, 12).getTime()

test.each([
  [0, 'now'],
  [-59.4 * second, '59 seconds ago'],
  [-59.6 * second, '1 minute ago'],
  [-59.6 * minute, '1 hour ago'],
  // A key of 12 hours, a moment after it was made.
  [12 * hour - 2 * second, 'in 12 hours'],
  [-23.6 * hour, '1 day ago'],
  // From a day on, the day counts: both are of the same day.
  [-2.4 * day, '2 days ago'],
  [-1.6 * day, '2 days ago'],
  [-75.4 * day, '2 months ago'],
  [-77.4 * day, '3 months ago'],
  [-13 * day, '13 days ago'],
  [-14 * day, '2 weeks ago'],
  [30 * day - second, 'in 4 weeks'],
  [-60 * day, '2 months ago'],
  [-730 * day, '2 years ago'],
])('%p ms are told as "%s"', (ms, told) => {
  expect(formatDistance(new Date(now + ms), now)).toBe(told)
})

const lines = (count: number, word: string) =>
  Array.from({ length: count }, (_, index) => `${word} ${index}`).join('\n')

test.each([
  ['a change in the middle', 'a\nb\nc\n', 'a\nB\nc\n'],
  ['no newline at the end', 'a\nb', 'a\nb\n'],
  ['a text from nothing', '', 'a\n'],
  ['a text to nothing', 'a', ''],
  ['other ends of lines', 'a\r\nb\r\n', 'a\nb\n'],
  ['more lines than are compared', lines(3_000, 'old'), lines(2_000, 'new')],
  ['every line of two large texts', `${lines(5_000, 'old')}\n`, `${lines(5_000, 'new')}\n`],
])('the diff of %s makes the later text of the earlier one', (_, before, after) => {
  expect(applyPatch(before, unifiedDiff('a.md', before, after))).toBe(after)
})

test('a text with more than 200 removed and added lines is replaced as a whole', () => {
  const [before, after] = [lines(400, 'old'), lines(400, 'new')].map((text) => text.split('\n'))
  const changed = (count: number) => [...(after ?? []).slice(0, count), ...(before ?? []).slice(count)].join('\n')
  const removedOf = (count: number) => unifiedDiff('a.md', changed(0), changed(count)).match(/^-old/gm)?.length
  expect([100, 101].map(removedOf)).toEqual([100, 400])
})

test('equal texts have an empty diff, and the slowest pair of texts takes no longer than a blink', () => {
  expect(unifiedDiff('a.md', 'a', 'a')).toBe('')
  const startedAt = process.cpuUsage().user
  unifiedDiff('a.md', 'a\n'.repeat(32_768), 'b\n'.repeat(32_768))
  expect((process.cpuUsage().user - startedAt) / 1_000).toBeLessThan(500)
})

test.each([
  ['/prompts/pmt_history/signals', { value: 'positive' }, 1],
  ['/prompts', { name: 'greeting' }, 1],
  ['/prompts', { name: 'greeting', repository: 'acme/prompts', path: 'a.md' }, 2],
  ['/prompts/pmt_a/history', {}, 2],
  ['/history/batch', {}, 2],
])('a call that would create a thing twice is sent once: POST %s %o', async (path, body, expected) => {
  let calls = 0
  const answers = [503, 201]
  const server = Bun.serve({
    port: 0,
    fetch: () => Response.json({ data: {} }, { status: answers[calls++] ?? 201, headers: { 'retry-after': '0.01' } }),
  })
  try {
    await openRest(server.url.href, 'psk_x', new AbortController().signal)('POST', path, body)
    expect(calls).toBe(expected)
  } finally {
    await server.stop(true)
  }
})
