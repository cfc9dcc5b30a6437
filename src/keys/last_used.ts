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
  let flushesAt = Number.POSITIVE_INFINITY
  let timer: ReturnType<typeof setTimeout> | undefined

  function schedule(gapMs: number): void {
    const dueAt = flushedAt + gapMs
    if (dueAt >= flushesAt) return
    clearTimeout(timer)
    flushesAt = dueAt
    timer = setTimeout(flush, Math.max(0, dueAt - performance.now()))
    timer.unref()
  }

  function record(keyId: number, usedAt: Date): void {
    if (pending.size >= maxPending && !pending.has(keyId)) return
    pending.set(keyId, usedAt)
    schedule(pending.size < maxPending ? flushEveryMs : flushFullEveryMs)
  }

  async function flush(): Promise<void> {
    clearTimeout(timer)
    flushesAt = Number.POSITIVE_INFINITY
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
