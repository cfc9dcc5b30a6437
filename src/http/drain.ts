/** How long after a response the next request of a busy client may still arrive on the same connection. */
const nextRequestMs = 500

export type Drain = ReturnType<typeof createDrain>

/** While draining, responses close their connections, so that no request is sent on one that is about to drop. */
export function createDrain() {
  let isDraining = false
  let answeredAt = Number.NEGATIVE_INFINITY
  return {
    get isDraining() {
      return isDraining
    },
    answered(at: number): void {
      answeredAt = at
    },
    run(ms: number): Promise<void> {
      isDraining = true
      const isBusy = performance.now() - answeredAt < nextRequestMs
      return new Promise((resolve) => setTimeout(resolve, Math.max(ms, isBusy ? nextRequestMs : 0)))
    },
  }
}
