import { expect, test } from 'bun:test'
import { createHeavyReads } from '../../src/db/heavy_reads.ts'

test('an organisation that asks for much has two reads at a time, and others go on', () => {
  const started: number[] = []
  const heavyReads = createHeavyReads()
  const reads = [1, 1, 1, 1, 1, 2, 3].map((organisationId) =>
    heavyReads(organisationId, () => {
      started.push(organisationId)
      return new Promise<void>(() => {})
    }),
  )
  // Those that wait time out after the test, which nobody is to hear of.
  void Promise.allSettled(reads)
  expect(started).toEqual([1, 1, 2, 3])
})
