import { expect, test } from 'bun:test'
import type { UnavailableError } from '../../src/errors.ts'
import { nextTurn } from '../../src/lib/concurrency.ts'
import { createGroupCommit } from '../../src/signals/group_commit.ts'

type Options = Partial<Parameters<typeof createGroupCommit<string, string>>[0]>

/** Items are named by their group and a number; 'x' in the name makes the item bad. */
function setUp(options: Options = {}) {
  const writes: string[] = []
  const gates: PromiseWithResolvers<void>[] = []
  const held = new Set<string>()
  const group = createGroupCommit<string, string>({
    async write(items) {
      writes.push(items.join(' '))
      const gate = Promise.withResolvers<void>()
      gates.push(gate)
      await gate.promise
      if (items.some((item) => held.has(item.charAt(0)))) throw new Error('lock_timeout')
      if (items.some((item) => item.includes('x'))) throw new Error('bad_row')
      if (items.includes('down')) throw new Error('connection lost')
      return items.map((item) => `wrote ${item}`)
    },
    classifyError: ({ message }: Error) => (message === 'lock_timeout' || message === 'bad_row' ? message : undefined),
    groupOf: (item) => item.charAt(0),
    maxBatch: 100,
    weightOf: (item) => item.length,
    maxBatchWeight: 10_000,
    maxQueued: 1_000,
    deadlineOf: () => Number.POSITIVE_INFINITY,
    lingerMs: 0,
    maxWrites: () => 1,
    ...options,
  })
  const settle = async () => {
    for (let turn = 0; turn < 3; turn += 1) await nextTurn()
  }
  const outcomes: Record<string, string> = {}
  /** Adds items in one turn. Each has an outcome once it is settled. */
  async function add(...items: string[]) {
    for (const item of items) {
      const reasonOf = (error: UnavailableError) => error.reason ?? error.message
      group
        .add(item)
        .then((written) => written, reasonOf)
        .then((outcome) => (outcomes[item] = outcome))
    }
    await nextTurn()
  }
  /** Lets every write under way finish, and the next ones begin. */
  async function finish(rounds = 1) {
    for (let round = 0; round < rounds; round += 1) {
      await settle()
      for (const gate of gates.splice(0)) gate.resolve()
    }
    await settle()
  }
  return { group, add, outcomes, writes, held, finish }
}

const written = (...items: string[]) => Object.fromEntries(items.map((item) => [item, `wrote ${item}`]))

test('items that arrive during a write are written together as the next batch', async () => {
  const { add, outcomes, writes, finish } = setUp()
  await add('a1')
  await add('a2', 'b3')
  await finish(2)
  expect(outcomes).toEqual(written('a1', 'a2', 'b3'))
  expect(writes).toEqual(['a1', 'a2 b3'])
})

test.each<[string, Options, string[]]>([
  ['takes no more items than allowed', { maxBatch: 2 }, ['a1 a2', 'a3 a4', 'a5']],
  ['is no larger than allowed, unless it is of one item', { maxBatchWeight: 6 }, ['a1 a2 a3', 'a4', 'a-longer', 'a6']],
])('a write %s', async (_, options, expected) => {
  const { add, outcomes, writes, finish } = setUp(options)
  const items = expected.join(' ').split(' ')
  await add(...items)
  await finish(expected.length)
  expect(outcomes).toEqual(written(...items))
  expect(writes).toEqual(expected)
})

test('callers who all come back immediately are written by halves, one while the other is answered', async () => {
  const { group, writes, finish } = setUp({ maxBatch: 500 })
  let open = true
  const callers = Array.from({ length: 400 }, async (_, number) => {
    while (open) await group.add(`a${number}`)
  })
  await finish(10)
  open = false
  await finish(10)
  await Promise.all(callers)
  expect(writes.slice(0, 10).map((write) => write.split(' ').length)).toEqual(Array(10).fill(200))
})

test('the next write begins before those of the last are answered', async () => {
  const { group, writes, finish } = setUp({ maxBatch: 1 })
  const seenByFirst = group.add('a1').then(() => [...writes])
  const second = group.add('a2')
  await finish(2)
  await second
  expect(await seenByFirst).toEqual(['a1', 'a2'])
})

test('a few callers who come back immediately are written together', async () => {
  const { group, writes, finish } = setUp({ lingerMs: 60_000 })
  const first = group.add('a1').then(() => group.add('a2'))
  await nextTurn()
  const second = group.add('b1')
  await finish(2)
  expect(await Promise.all([first, second])).toEqual(['wrote a2', 'wrote b1'])
  expect(writes).toEqual(['a1', 'b1 a2'])
})

test('after lingering for callers who do not come back, there is a cooldown', async () => {
  const { add, outcomes, writes, finish } = setUp({ lingerMs: 1_000 })
  await add('a1')
  await add('b1')
  await finish()
  expect(writes).toEqual(['a1'])
  while (writes.length < 2) await nextTurn()
  await add('c1')
  await finish()
  expect(writes).toEqual(['a1', 'b1', 'c1'])
  await finish()
  expect(outcomes).toEqual(written('a1', 'b1', 'c1'))
})

test('there is no lingering for more than a few callers', async () => {
  const { add, outcomes, writes, finish } = setUp({ lingerMs: 60_000 })
  const many = Array.from({ length: 20 }, (_, number) => `a${number}`)
  await add(...many)
  await add('b1')
  await finish(2)
  expect(outcomes).toEqual(written(...many, 'b1'))
  expect(writes.length).toBe(2)
})

test('two writes may be in flight', async () => {
  const { add, outcomes, writes, finish } = setUp({ maxWrites: () => 2 })
  for (const items of [['a1'], ['a2'], ['a3', 'b4']]) await add(...items)
  expect(writes).toEqual(['a1', 'a2'])
  await finish(2)
  expect(outcomes).toEqual(written('a1', 'a2', 'a3', 'b4'))
  expect(writes).toEqual(['a1', 'a2', 'a3 b4'])
})

test('after two writes in flight there is one again when no more are allowed', async () => {
  let maxWrites = 2
  const { add, outcomes, writes, finish } = setUp({ maxBatch: 1, maxWrites: () => maxWrites })
  await add('a1', 'a2', 'a3', 'a4', 'a5')
  expect(writes).toEqual(['a1', 'a2'])
  maxWrites = 1
  for (const written of [3, 4, 5]) {
    await finish()
    expect(writes).toHaveLength(written)
  }
  await finish()
  expect(outcomes).toEqual(written('a1', 'a2', 'a3', 'a4', 'a5'))
})

test.each([1, 2])('what callers add as soon as they are answered is written once (%d in flight)', async (maxWrites) => {
  const { group, writes, finish } = setUp({ maxWrites: () => maxWrites })
  let active = 20
  for (let caller = 0; caller < 20; caller += 1) {
    const repeat = async () => {
      for (let number = 0; number < 50; number += 1) await group.add(`${caller % 3}-${caller}-${number}`)
      active -= 1
    }
    repeat()
  }
  for (let round = 0; round < 500 && active > 0; round += 1) await finish()
  const items = writes.flatMap((write) => write.split(' '))
  expect([active, items.length, new Set(items).size]).toEqual([0, 1_000, 1_000])
})

test('a group in its own lane has one write in flight', async () => {
  const { add, outcomes, writes, held, finish } = setUp({ maxWrites: () => 2 })
  held.add('a')
  await add('a1')
  await finish(2)
  await add('a2', 'a3')
  expect(writes).toEqual(['a1', 'a1', 'a1'])
  held.clear()
  await finish(2)
  expect(outcomes).toEqual(written('a1', 'a2', 'a3'))
  expect(writes).toEqual(['a1', 'a1', 'a1', 'a2 a3'])
})

test('one bad item fails alone, after few writes; the others are written', async () => {
  const { add, outcomes, writes, finish } = setUp()
  const items = Array.from({ length: 64 }, (_, index) => (index === 40 ? 'ax' : `a${index}`))
  await add(...items)
  await finish(20)
  expect(outcomes).toEqual({ ...written(...items), ax: 'bad_row' })
  expect(writes.length).toBeLessThan(15)
})

test('a failure that no item caused fails the whole write and nothing after it', async () => {
  const { add, outcomes, writes, finish } = setUp()
  await add('a1', 'down')
  await finish()
  await add('a2')
  await finish()
  expect(outcomes).toEqual({ a1: 'connection lost', down: 'connection lost', a2: 'wrote a2' })
  expect(writes).toEqual(['a1 down', 'a2'])
})

test('a group whose rows are locked delays the others by one write, and goes on by itself', async () => {
  const { add, outcomes, writes, held, finish } = setUp()
  held.add('a')
  await add('a1', 'b1')
  await finish(2)
  expect(outcomes).toEqual(written('b1'))
  await add('a2', 'b2')
  await finish(1)
  expect(outcomes).toEqual(written('b1', 'b2'))
  // Once it has its own lane, the locked group shares no write with another group.
  expect(writes.slice(1).filter((write) => /a/.test(write) && /b/.test(write))).toEqual([])
  held.delete('a')
  await finish(3)
  expect(outcomes).toEqual(written('a1', 'b1', 'a2', 'b2'))
  await add('a3', 'b3')
  await finish(1)
  expect(outcomes).toEqual(written('a1', 'b1', 'a2', 'b2', 'a3', 'b3'))
  expect(writes.at(-1)).toBe('a3 b3')
})

test('an item that waited too long is rejected and never written', async () => {
  const { add, outcomes, writes, finish } = setUp({ deadlineOf: () => performance.now() })
  await add('a1')
  await finish()
  expect(outcomes).toEqual({ a1: 'timeout' })
  expect(writes).toEqual([])
})

test('an item whose deadline passes while a bad one is isolated is rejected and never written', async () => {
  const deadline = performance.now() + 1_000
  const deadlineOf = (item: string) => (item === 'a4' ? deadline : Number.POSITIVE_INFINITY)
  const { add, outcomes, writes, finish } = setUp({ deadlineOf })
  await add('ax', 'a2', 'a3', 'a4')
  expect(writes).toEqual(['ax a2 a3 a4'])
  while (performance.now() < deadline) await Bun.sleep(10)
  await finish(6)
  expect(outcomes).toEqual({ ...written('a2', 'a3'), ax: 'bad_row', a4: 'timeout' })
  expect(writes.slice(1).filter((write) => write.includes('a4'))).toEqual([])
})

test('a group with many items does not make another wait for more than the write in flight', async () => {
  const { add, outcomes, writes, finish } = setUp({ maxBatch: 4 })
  const many = Array.from({ length: 20 }, (_, number) => `a${number}`)
  await add(...many)
  await add('b1')
  await finish(2)
  expect(writes[1]).toContain('b1')
  expect(outcomes).toMatchObject(written('b1'))
  await finish(5)
  expect(outcomes).toEqual(written(...many, 'b1'))
})

test('a group takes no more of the queue than it leaves free, also while its rows are locked', async () => {
  const { add, outcomes, held, finish } = setUp({ maxQueued: 8 })
  held.add('a')
  await add('a1', 'a2', 'a3', 'a4', 'a5')
  expect(outcomes).toEqual({ a5: 'overload' })
  await finish(2)
  await add('b1', 'b2', 'b3', 'a6', 'c1', 'c2')
  const refused = { a5: 'overload', a6: 'overload', b3: 'overload', c2: 'overload' }
  expect(outcomes).toEqual(refused)
  await finish()
  expect(outcomes).toEqual({ ...refused, ...written('b1', 'b2', 'c1') })
  held.clear()
  await finish(3)
  await add('a7')
  await finish()
  expect(outcomes).toEqual({ ...refused, ...written('a1', 'a2', 'a3', 'a4', 'a7', 'b1', 'b2', 'c1') })
})

test('draining waits for everything that was added, in every lane', async () => {
  const { group, add, outcomes, held, finish } = setUp({ maxBatch: 1 })
  held.add('a')
  await add('a1', 'b2')
  const draining = group.drain().then(() => ({ ...outcomes }))
  await finish(2)
  expect(Bun.peek.status(draining)).toBe('pending')
  held.clear()
  await finish(3)
  expect(await draining).toEqual(written('a1', 'b2'))
})
