import { BoundedCache } from '../lib/bounded_cache.ts'

/** A token bucket for each address, which slows those that keep sending keys which are not valid. Kept in memory, bounded. */
export type FailedKeys = {
  /** Takes one attempt from the budget of the address; false when none is left. */
  take(address: string): boolean
  /** Gives an attempt back, because its key was right. */
  giveBack(address: string): void
  /** Reports a failure; beyond the budget, it returns a promise that resolves when the failure may be answered. */
  fail(isWithinBudget: boolean): Promise<void> | undefined
}

export type FailedKeyObserver = { failed(answered: 'at_once' | 'slowed'): void }

/** The size of a bucket: so many failures an address may have at once, and one more with each second. */
const budget = 60
const refillMs = 1_000
const slowedByMs = 1_000
const maxAddresses = 50_000
/** Each answer that is held back takes a connection and some kilobytes; further ones are sent at once. */
const maxHeld = 2_000

/**
 * Only the answer to a failure is held back: which key is right is known when it was looked up, so that callers with a
 * right key are not slowed, even at the same address. To reject the address without a look-up would shut them out.
 */
export function createFailedKeys(observe?: FailedKeyObserver, now = () => performance.now()): FailedKeys {
  const budgets = new BoundedCache<string, { left: number; at: number }>(maxAddresses)
  let held = 0

  function leftOf(address: string): number {
    const known = budgets.get(address)
    return known ? Math.min(budget, known.left + (now() - known.at) / refillMs) : budget
  }

  return {
    take(address) {
      const left = leftOf(address)
      budgets.set(address, { left: left < 1 ? left : left - 1, at: now() })
      return left >= 1
    },
    giveBack(address) {
      budgets.set(address, { left: leftOf(address) + 1, at: now() })
    },
    fail(isWithinBudget) {
      const isSlowed = !isWithinBudget && held < maxHeld
      observe?.failed(isSlowed ? 'slowed' : 'at_once')
      if (!isSlowed) return undefined
      held += 1
      return new Promise<void>((resolve) => setTimeout(resolve, slowedByMs)).finally(() => {
        held -= 1
      })
    },
  }
}
