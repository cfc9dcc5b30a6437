/** How long after a response the next request of a busy client may still arrive on the same connection. */
const nextRequestMs = 500

/**
 * The time between the signal to stop and the end of listening. Every response during that time asks the client to close
 * the connection, so that no request is sent on a connection that the process is about to drop.
 */
export type Drain = {
  readonly isDraining: boolean
  answered(at: number): void
  /** Resolves after that time, or a little later when clients are busy. */
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
