/** Repeats the work at an interval without keeping the process alive. A failed run is followed by the next one. */
export function runPeriodically(everyMs: number, work: () => Promise<void>): { stop(): void } {
  const timer = setInterval(() => work().catch(() => {}), everyMs)
  timer.unref()
  return { stop: () => clearInterval(timer) }
}
