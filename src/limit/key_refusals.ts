import { BoundedCache } from '../lib/bounded_cache.ts'
import type { Month } from '../lib/months.ts'
import type { Usage } from './schema.ts'

/** The browser key that a signal is counted with, and the key's limit as it was last known. */
export type BrowserKey = { id: number; monthlyLimit: number | null }

type KeyRefusals = {
  /** Returns the usage of a key that is known to be full. */
  find(key: BrowserKey, month: Month): Usage | undefined
  add(keyId: number, month: Month, usage: Usage): void
}

const maxKeys = 10_000
/** After a limit was raised and lowered again, a refusal may show a `used` that is too low for this long. */
const trustedForMs = 1_000

/**
 * Remembers which browser keys Postgres has refused, so that a flood of requests with a full key stays off Postgres. A full
 * month stays full unless the limit is raised, so a refusal holds only for the same limit.
 */
export function createKeyRefusals(): KeyRefusals {
  const refusals = new BoundedCache<number, Usage & { month: string; until: number }>(maxKeys)
  return {
    find({ id, monthlyLimit }, month) {
      const known = refusals.get(id)
      const holds = known?.month === month.name && known.limit === monthlyLimit && performance.now() < known.until
      return holds ? { used: known.used, limit: known.limit } : undefined
    },
    add(keyId, month, { used, limit }) {
      refusals.set(keyId, { used, limit, month: month.name, until: performance.now() + trustedForMs })
    },
  }
}
