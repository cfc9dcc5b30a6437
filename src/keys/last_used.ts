import type { Db } from '../db/client.ts'
import { markKeysUsed } from './store.ts'

export type LastUsed = {
  record(keyId: number, usedAt: Date): void
  /** Writes what is recorded. The next flush retries what could not be written. */
  flush(): Promise<void>
}

const flushEveryMs = 60_000
/** Keeps one statement short. */
const maxPending = 10_000

/**
 * Keeps the times at which keys were last used accurate to a minute, with one statement a minute for all keys. After a
 * minute without a flush a use is written immediately, so that the first use of a new key shows up.
 */
export function createLastUsed(db: Db): LastUsed {
  let pending = new Map<number, Date>()
  let flushedAt = Number.NEGATIVE_INFINITY
  let timer: ReturnType<typeof setTimeout> | undefined

  function record(keyId: number, usedAt: Date): void {
    pending.set(keyId, usedAt)
    if (pending.size === maxPending) flush()
    timer ??= setTimeout(flush, Math.max(0, flushedAt + flushEveryMs - performance.now())).unref()
  }

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
      pending = new Map([...batch, ...pending])
    }
  }

  return { record, flush }
}
