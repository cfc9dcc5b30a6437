/** How long after a response the next request of a busy client may still arrive on the same connection. */
const nextRequestMs = 500

export type Drain = ReturnType<typeof createDrain>

/** While draining, responses close their connections, so that no request is sent on one that is about to drop. */
export function createDrain() {
  let isDraining = false
  let isDrained = false
  let answeredAt = Number.NEGATIVE_INFINITY
  return {
    get isDraining() {
      return isDraining
    },
    /** Whether the time to keep serving is over: responses that may last for hours must end. */
    get isDrained() {
      return isDrained
    },
    answered(at: number): void {
      answeredAt = at
    },
    async run(ms: number): Promise<void> {
      isDraining = true
      const isBusy = performance.now() - answeredAt < nextRequestMs
      await new Promise((resolve) => setTimeout(resolve, Math.max(ms, isBusy ? nextRequestMs : 0)))
      isDrained = true
    },
  }
}
