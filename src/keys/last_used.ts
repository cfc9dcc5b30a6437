import type { Db } from '../db/client.ts'
import { markKeysUsed } from './store.ts'

export type LastUsed = ReturnType<typeof createLastUsed>

const flushEveryMs = 60_000
/** Bounds the statement, and the memory while the database is away. */
const maxPending = 20_000

/** Writes once a minute for all keys. The first use after a pause is written immediately: a new key shows up. */
export function createLastUsed(db: Db) {
  let pending = new Map<string, Date>()
  let flushedAt = Number.NEGATIVE_INFINITY
  let timer: ReturnType<typeof setTimeout> | undefined

  function record(keyId: string, usedAt: Date): void {
    if (pending.size >= maxPending && !pending.has(keyId)) return
    pending.set(keyId, usedAt)
    timer ??= setTimeout(flush, Math.max(0, flushedAt + flushEveryMs - performance.now())).unref()
  }

  /** Writes what is recorded. The next flush retries what could not be written. */
  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
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
