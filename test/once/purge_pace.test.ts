import { expect, test } from 'bun:test'
import { systemClock } from '../../src/clock.ts'
import type { Db } from '../../src/db/client.ts'
import { purgeSignals } from '../../src/signals/erase.ts'

/** Purges a prompt on a database that takes `msPerStep(rows)` for each step; returns the sizes of the steps. */
async function purge(isEmbedded: boolean, msPerStep: (rows: number) => number, steps = 8): Promise<number[]> {
  const sizes: number[] = []
  const sql = async (_: TemplateStringsArray, ...values: unknown[]) => {
    const rows = values.at(-1) as number
    sizes.push(rows)
    await Bun.sleep(msPerStep(rows))
    return [{ found: sizes.length < steps ? rows : 0, erased: rows }]
  }
  const db = { sql, isEmbedded, transaction: async () => {} } as unknown as Db
  await purgeSignals(db, systemClock, { organisationId: 1, promptId: 1, publicId: 'pmt_1' }, new Date())
  return sizes
}

test('a purge rests after each step for as long as the step took', async () => {
  const [stepMs, steps] = [30, 8]
  const beganAt = performance.now()
  await purge(false, () => stepMs, steps)
  // A timer may be a millisecond early.
  expect(performance.now() - beganAt).toBeGreaterThan(2 * steps * (stepMs - 2))
})

test('short steps grow and long ones shrink, but not on the embedded engine', async () => {
  const sizes = await purge(false, (rows) => (rows >= 4_000 ? 60 : 0))
  expect(sizes).toEqual([500, 1_000, 2_000, 4_000, 2_000, 4_000, 2_000, 4_000])
  expect(await purge(true, () => 0)).toEqual(Array(8).fill(500))
})
