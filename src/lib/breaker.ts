/** A circuit breaker: skips calls to a dependency that keeps failing, and retries one of them at an interval. */
type Breaker = {
  /** Returns the result, or undefined when the call failed or was skipped. */
  attempt<T>(call: () => Promise<T>): Promise<T | undefined>
}

type Options = {
  /** The number of failures in a row that opens the breaker. */
  failures: number
  /** While the breaker is open, one call is tried at this interval. */
  retryMs: number
  onChange?: (isOpen: boolean) => void
}

export function createBreaker({ failures, retryMs, onChange = () => {} }: Options): Breaker {
  let failed = 0
  let retryAt = 0
  return {
    async attempt(call) {
      const isOpen = failed >= failures
      if (isOpen && performance.now() < retryAt) return undefined
      // The first call after the pause is tried; others are skipped until its result is known.
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
