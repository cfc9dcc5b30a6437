import { expect, test } from 'bun:test'
import { createDataLoader } from '../../src/lib/data_loader.ts'
import { nextTurn } from '../../src/lib/turns.ts'
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

test('look-ups that hang hold up the others only for a moment, and no more than a few of them run at once', async () => {
  const hung: PromiseWithResolvers<void>[] = []
  let hangs = 1
  const lookUp = createDataLoader(async (keys) => {
    if (hung.length < hangs) {
      const one = Promise.withResolvers<void>()
      hung.push(one)
      await one.promise
    }
    return new Map(keys.map((key) => [key, `found ${key}`]))
  })
  const first = lookUp('first')
  await nextTurn()
  expect(await lookUp('second')).toBe('found second')
  expect(await lookUp('third')).toBe('found third')

  hangs = 100
  const waiting: Promise<string | undefined>[] = []
  for (let count = 2; count <= 4; count += 1) {
    waiting.push(lookUp(`hung ${count}`))
    await eventually(() => hung.length, count)
  }
  const last = lookUp('last')
  // The fourth is slow by now, too, but as many as may be passed have been.
  await Bun.sleep(600)
  expect(hung).toHaveLength(4)
  hangs = 0
  for (const { resolve } of hung) resolve()
  const names = ['first', 'hung 2', 'hung 3', 'hung 4', 'last']
  expect(await Promise.all([first, waiting, last].flat())).toEqual(names.map((name) => `found ${name}`))
  expect(await lookUp('after')).toBe('found after')
})
