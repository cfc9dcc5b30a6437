/** Repeats the work at an interval without keeping the process alive. A run that fails is made up for by the next. */
export function startRounds(everyMs: number, work: () => Promise<void>): { stop(): void } {
  const timer = setInterval(() => work().catch(() => {}), everyMs)
  timer.unref()
  return { stop: () => clearInterval(timer) }
}
