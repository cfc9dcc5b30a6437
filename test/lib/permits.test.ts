import { expect, test } from 'bun:test'
import { createPermits } from '../../src/lib/permits.ts'

const full = new Error('full')

test('so many run at once, the others one by one in the order they came, and past the line all are refused', async () => {
  const permitted = createPermits(2, 2, () => full)
  const started: number[] = []
  const works = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
  const starts = works.map(() => Promise.withResolvers<void>())
  const runs = works.map(({ promise }, index) =>
    permitted(() => {
      started.push(index)
      starts[index]?.resolve()
      return promise
    }),
  )
  await expect(permitted(async () => {})).rejects.toBe(full)
  expect(started).toEqual([0, 1])
  works[1]?.resolve()
  await Promise.all([runs[1], starts[2]?.promise])
  expect(started).toEqual([0, 1, 2])
  // A failure makes room as well.
  works[0]?.reject(new Error('failed'))
  await expect(runs[0]).rejects.toThrow('failed')
  await starts[3]?.promise
  expect(started).toEqual([0, 1, 2, 3])
  works[2]?.resolve()
  works[3]?.resolve()
  await Promise.all(runs.slice(2))
  expect(await permitted(async () => 'free again')).toBe('free again')
})
