import { expect, test } from 'bun:test'
import { createSharedLookup } from '../../src/lib/shared_lookup.ts'

test('whoever asks during a look-up shares the next one, which starts after they asked', async () => {
  let truth = 1
  const gates: PromiseWithResolvers<void>[] = []
  const lookUp = createSharedLookup(async (key: string) => {
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    const read = truth
    await gate.promise
    return `${key} ${read}`
  })
  const first = lookUp('a')
  truth = 2
  const late = [lookUp('a'), lookUp('a')]
  gates[0]?.resolve()
  expect(await first).toBe('a 1')
  await Promise.resolve()
  gates[1]?.resolve()
  expect(await Promise.all(late)).toEqual(['a 2', 'a 2'])
  expect(gates).toHaveLength(2)
})

test('a look-up that fails fails only those who shared it', async () => {
  let fails = true
  const lookUp = createSharedLookup(async () => {
    if (fails) throw new Error('down')
    return 'up'
  })
  expect(lookUp('a')).rejects.toThrow('down')
  fails = false
  expect(await lookUp('a')).toBe('up')
  expect(await lookUp('a')).toBe('up')
})
