/** How long after an answer a busy caller's next request on the same connection may still be on its way. */
const nextRequestMs = 500

/**
 * The time between the signal to stop and the end of listening. Every answer given meanwhile asks for the connection to
 * be closed, so that no caller sends a request on a connection that the process is about to drop.
 */
export type Drain = {
  readonly isDraining: boolean
  answered(at: number): void
  /** Resolves after that time, or a little later when callers were busy until now. */
  run(ms: number): Promise<void>
}

export function createDrain(): Drain {
  let isDraining = false
  let answeredAt = Number.NEGATIVE_INFINITY
  return {
    get isDraining() {
      return isDraining
    },
    answered(at) {
      answeredAt = at
    },
    run(ms) {
      isDraining = true
      const isBusy = performance.now() - answeredAt < nextRequestMs
      return new Promise((resolve) => setTimeout(resolve, Math.max(ms, isBusy ? nextRequestMs : 0)))
    },
  }
}
