/** One failure may be chance. From the second in a row on, no call waits for the timeout. */
const maxFailures = 2
/** After this many pauses without a call, a part no longer counts as failing: it may be gone. */
const maxIdlePauses = 5

type Part = { failed: number; retryAt: number }

/**
 * Skips calls while they keep failing, except for one every `retryMs`. Undefined for a failed or skipped call.
 * Failures of one part do not affect calls to the others. `onChange` is told whether any part is failing.
 */
export function createBreaker(onChange?: (isOpen: boolean) => void, retryMs = 1_000) {
  /** Only those whose last call failed. */
  const parts = new Map<string, Part>()
  let wasOpen = false

  function report(): void {
    let isOpen = false
    for (const [name, { failed, retryAt }] of parts) {
      if (performance.now() - retryAt > maxIdlePauses * retryMs) parts.delete(name)
      else isOpen ||= failed >= maxFailures
    }
    if (isOpen !== wasOpen) onChange?.(isOpen)
    wasOpen = isOpen
  }

  return async <T>(call: () => Promise<T>, name = ''): Promise<T | undefined> => {
    const failing = parts.get(name)
    if (failing && failing.failed >= maxFailures) {
      if (performance.now() < failing.retryAt) return undefined
      // The first call after the pause is tried; others are skipped until its result is known.
      failing.retryAt = performance.now() + retryMs
    }
    try {
      const result = await call()
      parts.delete(name)
      if (wasOpen) report()
      return result
    } catch {
      const failed = (parts.get(name)?.failed ?? 0) + 1
      parts.set(name, { failed, retryAt: performance.now() + retryMs })
      report()
      return undefined
    }
  }
}
