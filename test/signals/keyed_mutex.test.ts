import { expect, test } from 'bun:test'
import { nextTurn } from '../../src/lib/turns.ts'
import { createKeyedMutex } from '../../src/signals/keyed_mutex.ts'

test('works with one key run in the order they came, and one too many waiters are rejected', async () => {
  const exclusively = createKeyedMutex(3, () => new Error('too many'))
  const order: string[] = []
  const work = (key: string, nth: number) =>
    exclusively(key, async () => {
      await nextTurn()
      order.push(`${key}${nth}`)
    }).catch(({ message }) => message)
  const ended = await Promise.all([...[1, 2, 3, 4, 5].map((nth) => work('a', nth)), work('b', 1)])
  expect(ended).toEqual([undefined, undefined, undefined, undefined, 'too many', undefined])
  expect(order).toEqual(['a1', 'b1', 'a2', 'a3', 'a4'])
  const failing = exclusively('a', () => Promise.reject(new Error('mine')))
  expect(await Promise.all([failing.catch(({ message }) => message), work('a', 6)])).toEqual(['mine', undefined])
})
