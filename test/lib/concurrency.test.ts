import { expect, test } from 'bun:test'
import { createDataLoader, createSemaphore, nextTurn, type PermitRequest } from '../../src/lib/concurrency.ts'
import { runPeriodically } from '../../src/lib/periodic.ts'
import { eventually } from '../program.ts'

test('keys requested during a look-up share the next one, which starts after they were requested', async () => {
  let truth = 1
  const groups: string[][] = []
  const gates: PromiseWithResolvers<void>[] = []
  const lookUp = createDataLoader(async (keys) => {
    groups.push(keys)
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    const read = truth
    await gate.promise
    return new Map(keys.filter((key) => key !== 'missing').map((key) => [key, `${key} ${read}`]))
  })
  const first = lookUp('a')
  await nextTurn()
  truth = 2
  const late = [lookUp('a'), lookUp('b'), lookUp('a'), lookUp('missing')]
  gates[0]?.resolve()
  expect(await first).toBe('a 1')
  await nextTurn()
  gates[1]?.resolve()
  expect(await Promise.all(late)).toEqual(['a 2', 'b 2', 'a 2', undefined])
  expect(groups).toEqual([['a'], ['a', 'b', 'missing']])
})

test('a look-up that fails rejects only the keys in it', async () => {
  let fails = true
  const lookUp = createDataLoader(async (keys) => {
    if (fails) throw new Error('down')
    return new Map(keys.map((key) => [key, 'up']))
  })
  expect(await lookUp('a').catch((error: Error) => error.message)).toBe('down')
  fails = false
  expect(await lookUp('a')).toBe('up')
})

test('a round that fails is reported and followed by the next, and one that takes long has none beside it', async () => {
  const failures: unknown[] = []
  const ends: (() => void)[] = []
  let begun = 0
  const rounds = runPeriodically(
    1,
    () => {
      begun += 1
      if (begun <= 2) return Promise.reject(begun)
      return new Promise((resolve) => ends.push(resolve))
    },
    (error) => failures.push(error),
  )
  await eventually(() => [begun, failures], [3, [1, 2]])
  const others = runPeriodically(1, async () => void ends.push(() => {}))
  await eventually(() => ends.length > 20, true)
  others.stop()
  expect(begun).toBe(3)
  ends[0]?.()
  await eventually(() => begun, 4)
  rounds.stop()
})

const full = new Error('full')
const rejectWith = () => full

/** Works that are ended by hand, and the names of those that were started. */
function createWorks(semaphore: ReturnType<typeof createSemaphore>) {
  const started: string[] = []
  const ends = new Map<string, PromiseWithResolvers<void>>()
  return {
    started,
    run(name: string, permitRequest?: PermitRequest): Promise<void> {
      const end = Promise.withResolvers<void>()
      ends.set(name, end)
      const ended = semaphore(() => {
        started.push(name)
        return end.promise
      }, permitRequest)
      ended.catch(() => {})
      return ended
    },
    async end(name: string, error?: Error): Promise<void> {
      if (error) ends.get(name)?.reject(error)
      else ends.get(name)?.resolve()
      await Bun.sleep(0)
    },
  }
}

test('only so many run concurrently, the others in the order they came, and one too many is rejected', async () => {
  const works = createWorks(createSemaphore({ permits: 2, maxWaiting: 2, rejectWith }))
  const runs = ['a', 'b', 'c', 'd'].map((name) => works.run(name))
  await expect(works.run('e')).rejects.toBe(full)
  expect(works.started).toEqual(['a', 'b'])
  await works.end('b')
  expect(works.started).toEqual(['a', 'b', 'c'])
  await works.end('a', new Error('failed'))
  await expect(runs[0]).rejects.toThrow('failed')
  expect(works.started).toEqual(['a', 'b', 'c', 'd'])
  await works.end('c')
  await works.end('d')
  works.run('f')
  expect(works.started.at(-1)).toBe('f')
})

test('a tenant has only its share of permits and of the queue, and tenants are served round-robin', async () => {
  const works = createWorks(
    createSemaphore({ permits: 3, permitsPerTenant: 2, maxWaiting: 10, maxWaitingPerTenant: 2, rejectWith }),
  )
  for (const name of ['a1', 'a2', 'a3', 'a4']) works.run(name, { tenant: 'a' })
  await expect(works.run('a5', { tenant: 'a' })).rejects.toBe(full)
  for (const name of ['b1', 'b2', 'b3']) works.run(name, { tenant: 'b' })
  works.run('c1', { tenant: 'c' })
  expect(works.started).toEqual(['a1', 'a2', 'b1'])
  await works.end('b1')
  expect(works.started.slice(3)).toEqual(['b2'])
  await works.end('b2')
  expect(works.started.slice(4)).toEqual(['c1'])
  await works.end('c1')
  expect(works.started.slice(5)).toEqual(['b3'])
  await works.end('a1')
  await works.end('a2')
  expect(works.started.slice(6)).toEqual(['a3', 'a4'])
})

test('works with the same key wait for each other without a permit', async () => {
  const works = createWorks(createSemaphore({ permits: 2, maxWaiting: 10, rejectWith }))
  for (const name of ['first', 'second']) works.run(name, { key: 'same' })
  works.run('other')
  expect(works.started).toEqual(['first', 'other'])
  await works.end('first')
  expect(works.started).toEqual(['first', 'other', 'second'])
})

test.each([
  ['that has waited too long', { patienceMs: 10 }, {}],
  ['whose caller has gone', {}, { deadline: performance.now() + 10 }],
])('a waiter %s is rejected, never started, and makes room in the queue', async (_, options, request) => {
  const works = createWorks(createSemaphore({ permits: 1, maxWaiting: 1, rejectWith, ...options }))
  works.run('first')
  await expect(works.run('late', request)).rejects.toBe(full)
  const next = works.run('next')
  await works.end('first')
  await works.end('next')
  await next
  expect(works.started).toEqual(['first', 'next'])
})
