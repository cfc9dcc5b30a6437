import { expect, test } from 'bun:test'
import { systemClock } from '../../src/clock.ts'
import type { Db } from '../../src/db/client.ts'
import { purgeSignals } from '../../src/signals/erase.ts'

test('a purge rests after each step for as long as the step took', async () => {
  const [stepMs, steps] = [30, 8]
  let left = steps
  const sql = async () => {
    await Bun.sleep(stepMs)
    left -= 1
    return [{ found: left > 0 ? 500 : 0, erased: 500 }]
  }
  const db = { sql, transaction: async () => {} } as unknown as Db
  const beganAt = performance.now()
  await purgeSignals(db, systemClock, { organisationId: 1, promptId: 1, publicId: 'pmt_1' }, new Date())
  // A timer may be a millisecond early.
  expect(performance.now() - beganAt).toBeGreaterThan(2 * steps * (stepMs - 2))
})
