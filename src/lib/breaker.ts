/** Keeps callers from something that keeps failing, and lets one of them try again after a while. */
export type Breaker = {
  /** The result, or undefined when the call failed or was not made. */
  attempt<T>(call: () => Promise<T>): Promise<T | undefined>
}

type Options = {
  failures: number
  retryMs: number
  /** Told when it begins to keep callers away, and when it no longer does. */
  onChange?: (isOpen: boolean) => void
}

export function createBreaker({ failures, retryMs, onChange = () => {} }: Options): Breaker {
  let failed = 0
  let retryAt = 0
  return {
    async attempt(call) {
      const isOpen = failed >= failures
      if (isOpen && performance.now() < retryAt) return undefined
      // Whoever comes first after the pause tries; the others go on without, until it is known how that went.
      if (isOpen) retryAt = performance.now() + retryMs
      try {
        const result = await call()
        if (failed >= failures) onChange(false)
        failed = 0
        return result
      } catch {
        failed += 1
        if (failed === failures) onChange(true)
        retryAt = performance.now() + retryMs
        return undefined
      }
    },
  }
}
