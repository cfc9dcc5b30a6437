import { afterEach, expect, spyOn, test } from 'bun:test'
import { systemClock } from '../../src/clock.ts'
import type { Db } from '../../src/db/client.ts'
import { purgeSignals } from '../../src/signals/erase.ts'

// A clock that a busy machine cannot move.
let now = 0
const clock = spyOn(performance, 'now').mockImplementation(() => now)
const timer = spyOn(globalThis, 'setTimeout')
afterEach(() => timer.mockClear())

/** Where each step starts. */
let starts: number[] = []

/**
 * Purges a prompt with a signal in every millisecond on a database that takes `msPerStep(rows)` for each step; returns the
 * sizes of the steps.
 */
async function purge(msPerStep: (rows: number) => number, steps = 8): Promise<unknown[]> {
  const sizes: unknown[] = []
  starts = []
  let erased = 0
  const sql = async (texts: TemplateStringsArray, ...values: unknown[]) => {
    if (texts[0]?.includes('pg_logical_emit_message')) return sizes.push('flush')
    if (texts.join().includes('count_signals_between')) return []
    const [, , since, , rows] = values as [number, number, Date, Date, number]
    starts.push(since.getTime())
    sizes.push(rows)
    now += msPerStep(rows)
    const firstAt = new Date(erased)
    erased += rows
    return [{ found: sizes.length < steps ? rows : 0, erased: rows, firstAt }]
  }
  const prompt = { id: 1, organisationId: 1, publicId: 'pmt_1' }
  const db = { sql, transaction: async () => {} } as unknown as Db
  await purgeSignals(db, systemClock, { ...prompt, prompt }, new Date())
  return sizes
}

test('a purge rests after each step for as long as the step took', async () => {
  // Nothing else in this process waits for so long.
  const stepMs = 37
  await purge(() => stepMs)
  expect(timer.mock.calls.filter(([, ms]) => ms === stepMs).length).toBe(8)
})

test('short steps grow and long ones shrink; each starts where the one before did', async () => {
  const sizes = await purge((rows) => (rows >= 4_000 ? 60 : 0))
  expect(sizes).toEqual([500, 1_000, 2_000, 4_000, 2_000, 4_000, 2_000, 4_000, 'flush'])
  expect(starts.slice(1)).toEqual([0, 500, 1_500, 3_500, 7_500, 9_500, 13_500])
  clock.mockRestore()
})
