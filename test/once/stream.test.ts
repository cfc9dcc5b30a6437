import { afterAll, beforeAll, expect, jest, test } from 'bun:test'
import { RequestContext } from '../../src/http/request_context.ts'
import { replyStream } from '../../src/http/stream.ts'

beforeAll(() => void jest.useFakeTimers())
afterAll(() => void jest.useRealTimers())

const pass = (seconds: number) => jest.advanceTimersByTime(seconds * 1_000)

const kibibyte = 'x'.repeat(1024)

async function* repeat(text: string, times = Number.POSITIVE_INFINITY): AsyncGenerator<string> {
  for (let n = 0; n < times; n += 1) yield text
}

/** The answer to a caller who takes one text at a time. */
async function answer(texts: AsyncIterator<string>, headers: Record<string, string> = {}) {
  const ends: unknown[] = []
  const timeouts: number[] = []
  const receiver = { requestIP: () => null, timeout: (_: Request, seconds: number) => timeouts.push(seconds) }
  const request = new Request('http://localhost/', { headers })
  const response = await replyStream(new RequestContext(request, '', undefined, undefined, receiver), texts, {
    type: 'text/plain',
    fileName: 'texts.txt',
    isStopping: () => false,
    onEnd: (error) => ends.push(error),
  })
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const take = () =>
    reader.read().then(
      ({ value, done }) => (done ? 'end' : value.length),
      () => 'cut',
    )
  return { take, leave: () => reader.cancel(), ends, timeouts, response }
}

test('ends once, after its last text, without the empty ones', async () => {
  const texts = (async function* () {
    yield* ['', 'ab', '', '', 'c', '']
  })()
  const { take, ends } = await answer(texts)
  expect([await take(), await take(), await take(), ends]).toEqual([2, 1, 'end', [undefined]])
  pass(60)
  expect(ends).toHaveLength(1)
})

test('each text starts the idle timeout of the connection again, also one of which nothing is sent', async () => {
  const { take, timeouts } = await answer(repeat('', 100))
  expect(await take()).toBe('end')
  expect(timeouts).toEqual(Array(101).fill(30))
})

test('is cut when nothing of it is taken for 30 seconds', async () => {
  const { take, ends } = await answer(repeat(kibibyte))
  expect(await take()).toBe(1024)
  pass(29.9)
  expect(ends).toEqual([])
  pass(0.2)
  expect([ends, await take()]).toEqual([[undefined], 'cut'])
})

test.each([
  // The first pause leaves one of the 30 seconds, and 200 KiB are worth 3.3 more.
  ['200 KiB in 29 seconds', kibibyte.repeat(200), 29, 2],
  ['64 KiB in 1.3 seconds', kibibyte.repeat(64), 1.3, 165],
  ['four short texts a second', 'x', 0.25, 200],
  ['64 KiB a second', kibibyte.repeat(64), 1, 3_600],
  ['a MiB in 16 seconds', kibibyte.repeat(1024), 16, 225],
  ['ten short texts a second', 'x', 0.1, 36_000],
])(
  'a client that takes %s is cut if that is too slow, and else not within an hour',
  async (_, text, seconds, texts) => {
    const { take, ends } = await answer(repeat(text))
    let taken = 0
    for (; taken * seconds < 3_600 && (await take()) !== 'cut'; taken += 1) pass(seconds)
    expect({ taken, ends }).toEqual({ taken: texts, ends: texts * seconds < 3_600 ? [undefined] : [] })
  },
)

test('ends once when the caller leaves during a read that then fails', async () => {
  const read = Promise.withResolvers<void>()
  const texts = (async function* () {
    yield 'ab'
    await read.promise
  })()
  const { take, leave, ends } = await answer(texts)
  expect(await take()).toBe(2)
  await leave()
  read.reject(new Error('the database has gone'))
  await read.promise.catch(() => {})
  expect(ends).toEqual([undefined])
})

test('time that passes while a text is read is not taken from the caller', async () => {
  let read = Promise.withResolvers<void>()
  const texts = (async function* () {
    yield 'x'
    for (;;) {
      await read.promise
      yield 'x'
    }
  })()
  const { take, ends } = await answer(texts)
  await take()
  for (let n = 0; n < 10; n += 1) {
    const taking = take()
    await Promise.resolve()
    pass(29)
    read.resolve()
    read = Promise.withResolvers()
    expect(await taking).toBe(1)
  }
  expect(ends).toEqual([])
})
