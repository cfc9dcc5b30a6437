/** One failure may be chance. From the second in a row on, no call waits for the timeout. */
const maxFailures = 2

/** Skips calls while they keep failing, except for one every `retryMs`. Undefined for a failed or skipped call. */
export function createBreaker(onChange?: (isOpen: boolean) => void, retryMs = 1_000) {
  let failed = 0
  let retryAt = 0
  return async <T>(call: () => Promise<T>): Promise<T | undefined> => {
    const isOpen = failed >= maxFailures
    if (isOpen && performance.now() < retryAt) return undefined
    // The first call after the pause is tried; others are skipped until its result is known.
    if (isOpen) retryAt = performance.now() + retryMs
    try {
      const result = await call()
      if (failed >= maxFailures) onChange?.(false)
      failed = 0
      return result
    } catch {
      failed += 1
      if (failed === maxFailures) onChange?.(true)
      retryAt = performance.now() + retryMs
      return undefined
    }
  }
}
