import type { Db } from '../db/client.ts'
import { markKeysUsed } from './store.ts'

export type LastUsed = ReturnType<typeof createLastUsed>

const flushEveryMs = 60_000
/** More keys than these make a flush come early, and are not kept while the database is away. */
const maxPending = 10_000
const flushFullEveryMs = 1_000

/** Writes once a minute for all keys. The first use after a pause is written immediately: a new key shows up. */
export function createLastUsed(db: Db) {
  let pending = new Map<number, Date>()
  let flushedAt = Number.NEGATIVE_INFINITY
  let timer: ReturnType<typeof setTimeout> | undefined

  function schedule(gapMs: number): void {
    clearTimeout(timer)
    timer = setTimeout(flush, Math.max(0, flushedAt + gapMs - performance.now())).unref()
  }

  function record(keyId: number, usedAt: Date): void {
    if (pending.size >= maxPending && !pending.has(keyId)) return
    pending.set(keyId, usedAt)
    if (pending.size === 1) schedule(flushEveryMs)
    if (pending.size === maxPending) schedule(flushFullEveryMs)
  }

  /** Writes what is recorded. The next flush retries what could not be written. */
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
