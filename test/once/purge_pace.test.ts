import { afterEach, expect, spyOn, test } from 'bun:test'
import { systemClock } from '../../src/clock.ts'
import type { Db } from '../../src/db/client.ts'
import { purgeSignals } from '../../src/signals/erase.ts'

// A clock that a busy machine cannot move.
let now = 0
const clock = spyOn(performance, 'now').mockImplementation(() => now)
const timer = spyOn(globalThis, 'setTimeout')
afterEach(() => timer.mockClear())

/** Purges a prompt on a database that takes `msPerStep(rows)` for each step; returns the sizes of the steps. */
async function purge(isEmbedded: boolean, msPerStep: (rows: number) => number, steps = 8): Promise<unknown[]> {
  const sizes: unknown[] = []
  const sql = async (texts: TemplateStringsArray, ...values: unknown[]) => {
    if (texts[0]?.includes('pg_logical_emit_message')) return sizes.push('flush')
    const rows = values.at(-1) as number
    sizes.push(rows)
    now += msPerStep(rows)
    return [{ found: sizes.length < steps ? rows : 0, erased: rows }]
  }
  const db = { sql, isEmbedded, transaction: async () => {} } as unknown as Db
  await purgeSignals(db, systemClock, { organisationId: 1, promptId: 1, publicId: 'pmt_1' }, new Date())
  return sizes
}

test('a purge rests after each step for as long as the step took', async () => {
  // Nothing else in this process waits for so long.
  const stepMs = 37
  await purge(false, () => stepMs, 8)
  expect(timer.mock.calls.filter(([, ms]) => ms === stepMs).length).toBe(8)
})

test('short steps grow and long ones shrink, but not on the embedded engine; the last commit covers all', async () => {
  const sizes = await purge(false, (rows) => (rows >= 4_000 ? 60 : 0))
  expect(sizes).toEqual([500, 1_000, 2_000, 4_000, 2_000, 4_000, 2_000, 4_000, 'flush'])
  expect(await purge(true, () => 0)).toEqual([...Array(8).fill(500), 'flush'])
  clock.mockRestore()
})
