import { BoundedCache } from '../lib/bounded_cache.ts'
import type { Month } from '../lib/months.ts'
import type { Usage } from './admit.ts'

/** The browser key that a signal is counted with, and the limit that the key was last known to have. */
export type BrowserKey = { id: number; monthlyLimit: number | null }

type KeyRefusals = {
  find(key: BrowserKey, month: Month): Usage | undefined
  add(keyId: number, month: Month, usage: Usage): void
}

const maxKeys = 10_000
/** Bounds for how long a `used` may be shown that a limit, raised and lowered meanwhile, has made too low. */
const trustedForMs = 1_000

/**
 * Remembers which browser keys Postgres has refused, so that a flood of a key that is used up stays off Postgres. A month
 * that is full stays full unless the limit is raised, so that a refusal holds only for the same limit.
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
