import { expect, test } from 'bun:test'
import { createGroupCommit } from '../../src/lib/group_commit.ts'

const fault = new Error('one row is bad')

function setUp(options: { maxItems?: number; maxWaiting?: number } = {}) {
  const writes: number[][] = []
  const gates: PromiseWithResolvers<void>[] = []
  const group = createGroupCommit<number, string>({
    async write(items) {
      writes.push(items)
      const gate = Promise.withResolvers<void>()
      gates.push(gate)
      await gate.promise
      if (items.includes(13)) throw fault
      return items.map((item) => `wrote ${item}`)
    },
    isItemFault: (error) => error === fault,
    refuse: () => new Error('full'),
    maxItems: options.maxItems ?? 100,
    maxWaiting: options.maxWaiting ?? 100,
  })
  /** Lets the write under way finish, and the next one begin. */
  async function finishOne() {
    while (gates.length === 0) await Promise.resolve()
    gates.shift()?.resolve()
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve()
  }
  return { group, writes, finishOne }
}

test('items that come during a write go down together as the next one', async () => {
  const { group, writes, finishOne } = setUp()
  const first = group.add(1)
  await Promise.resolve()
  const others = [group.add(2), group.add(3)]
  await finishOne()
  await finishOne()
  expect(await Promise.all([first, ...others])).toEqual(['wrote 1', 'wrote 2', 'wrote 3'])
  expect(writes).toEqual([[1], [2, 3]])
})

test('a write takes no more items than allowed', async () => {
  const { group, writes, finishOne } = setUp({ maxItems: 2 })
  const all = [1, 2, 3, 4, 5].map(group.add)
  for (let round = 0; round < 3; round += 1) await finishOne()
  await Promise.all(all)
  expect(writes).toEqual([[1, 2], [3, 4], [5]])
})

test('one bad item fails alone; the others are written', async () => {
  const { group, finishOne } = setUp()
  const all = Promise.allSettled([1, 13, 3].map(group.add))
  for (let round = 0; round < 4; round += 1) await finishOne()
  expect((await all).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

test('a full line refuses at once', async () => {
  const { group, finishOne } = setUp({ maxWaiting: 2 })
  const taken = [group.add(1), group.add(2)]
  expect(group.add(3)).rejects.toThrow('full')
  await finishOne()
  await Promise.all(taken)
})

test('draining waits for everything that was added', async () => {
  const { group, finishOne } = setUp({ maxItems: 1 })
  const all = Promise.all([1, 2].map(group.add))
  let drained = false
  const draining = group.drain().then(() => {
    drained = true
  })
  await finishOne()
  expect(drained).toBe(false)
  await finishOne()
  await draining
  expect(await all).toEqual(['wrote 1', 'wrote 2'])
})
