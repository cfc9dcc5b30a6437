import { expect, test } from 'bun:test'
import { runPeriodically } from '../../src/lib/periodic.ts'
import { eventually } from '../program.ts'

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
