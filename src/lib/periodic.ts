/** Repeats the work at an interval without keeping the process alive. Runs never overlap. Failures are reported. */
export function runPeriodically(
  everyMs: number,
  work: () => Promise<void>,
  onFailure: (error: unknown) => void = () => {},
): { stop(): void } {
  let isRunning = false
  const timer = setInterval(async () => {
    if (isRunning) return
    isRunning = true
    await work().catch(onFailure)
    isRunning = false
  }, everyMs)
  timer.unref()
  return { stop: () => clearInterval(timer) }
}

/** Sleeps for as long as the step took, so that background work uses at most half of the database's time. */
export const yieldFor = (startedAt: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, performance.now() - startedAt))
