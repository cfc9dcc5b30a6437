/** Waits as long as a step took that began then: whatever waited for the database meanwhile has its turn. */
export const restAfter = (beganAt: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, performance.now() - beganAt))
