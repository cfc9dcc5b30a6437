import { expect, test } from 'bun:test'
import { nextBatchSize } from '../../src/lib/group_commit.ts'

test.each([
  ['a small queue is written whole', 20, 0, 128],
  ['so is one whose callers all come back', 64, 64, 128],
  ['a large one by halves, of those queued and those just written', 200, 200, 200],
  ['an odd one is rounded up', 301, 100, 201],
  ['a batch never exceeds its maximum', 5_000, 500, 500],
])('%s', (_, queued, lastBatch, size) => {
  expect(nextBatchSize(queued, lastBatch, 500)).toBe(size)
})

test('a maximum below the smallest batch holds', () => {
  expect(nextBatchSize(10, 0, 2)).toBe(2)
})
