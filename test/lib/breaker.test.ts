import { expect, test } from 'bun:test'
import { createBreaker } from '../../src/lib/breaker.ts'

test('after failures in a row no call is made; a success in between resets the count', async () => {
  const breaker = createBreaker(undefined, 60_000)
  let calls = 0
  const attempt = (fails: boolean) =>
    breaker(async () => {
      calls += 1
      if (fails) throw new Error('down')
      return 'up'
    })
  await attempt(true)
  await attempt(false)
  await attempt(true)
  expect(await attempt(false)).toBe('up')
  await attempt(true)
  await attempt(true)
  expect(await attempt(false)).toBeUndefined()
  expect(calls).toBe(6)
})

test('after the pause one call is tried, the others are not made until it succeeds', async () => {
  const breaker = createBreaker(undefined, 20)
  for (let n = 0; n < 2; n += 1) await breaker(() => Promise.reject(new Error('down')))
  const pausedUntil = performance.now() + 20
  while (performance.now() < pausedUntil);
  const trial = Promise.withResolvers<string>()
  const trying = breaker(() => trial.promise)
  expect(await breaker(async () => 'up')).toBeUndefined()
  trial.resolve('up')
  expect(await trying).toBe('up')
  expect(await breaker(async () => 'up')).toBe('up')
})

test('a part that fails does not keep calls from the others, and is reported', async () => {
  const changes: boolean[] = []
  const breaker = createBreaker((isOpen) => changes.push(isOpen), 60_000)
  const fail = (part: string) => breaker(() => Promise.reject(new Error('down')), part)
  for (let n = 0; n < 2; n += 1) await fail('a')
  expect(await breaker(async () => 'up', 'a')).toBeUndefined()
  expect(await breaker(async () => 'up', 'b')).toBe('up')
  expect(changes).toEqual([true])
})
