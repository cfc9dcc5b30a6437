import { expect, test } from 'bun:test'
import type { Db } from '../../src/db/client.ts'
import { createSignalReader } from '../../src/signals/read.ts'
import { parseStatsQuery } from '../../src/signals/read_query.ts'
import type { SignalRollup } from '../../src/signals/rollup.ts'

test('an organisation that asks for much has two reads at a time, and others go on', () => {
  const started: number[] = []
  const rollup = {
    catchUp(promptId: number) {
      started.push(promptId)
      return new Promise<void>(() => {})
    },
  } as unknown as SignalRollup
  const reader = createSignalReader({} as Db, { now: () => new Date() }, rollup)
  const query = parseStatsQuery(new URLSearchParams(), new Date())
  const reads = [1, 1, 1, 1, 1, 2, 3].map((organisationId) =>
    reader.stats({ id: organisationId, organisationId }, query),
  )
  // Those that wait give up after the test, which nobody is to hear of.
  void Promise.allSettled(reads)
  expect(started).toEqual([1, 1, 2, 3])
})
