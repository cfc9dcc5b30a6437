import type { Db } from '../db/client.ts'
import { markKeysUsed } from './store.ts'

export type LastUsed = {
  record(keyId: number, usedAt: Date): void
  /** Writes what is recorded; what could not be written is tried again with the next flush. */
  flush(): Promise<void>
}

const flushEveryMs = 60_000
/** With so many keys waiting a flush comes early. While the database is away, more than these are not kept. */
const maxPending = 10_000
const flushFullEveryMs = 1_000

/**
 * Keeps the times at which keys were last used true to a minute, with one statement a minute for all keys in use. After
 * a minute without any a use is written at once, so that the first use of a new key is seen immediately.
 */
export function createLastUsed(db: Db): LastUsed {
  let pending = new Map<number, Date>()
  let flushedAt = Number.NEGATIVE_INFINITY
  let timer: ReturnType<typeof setTimeout> | undefined

  function schedule(gapMs: number): void {
    clearTimeout(timer)
    timer = setTimeout(flush, Math.max(0, flushedAt + gapMs - performance.now()))
    timer.unref()
  }

  function record(keyId: number, usedAt: Date): void {
    if (pending.size >= maxPending && !pending.has(keyId)) return
    pending.set(keyId, usedAt)
    if (pending.size === 1) schedule(flushEveryMs)
    if (pending.size === maxPending) schedule(flushFullEveryMs)
  }

  async function flush(): Promise<void> {
    clearTimeout(timer)
    const batch = pending
    if (batch.size === 0) return
    pending = new Map()
    flushedAt = performance.now()
    try {
      await markKeysUsed(db.sql, batch)
    } catch {
      for (const [keyId, usedAt] of batch) if (!pending.has(keyId)) record(keyId, usedAt)
    }
  }

  return { record, flush }
}
