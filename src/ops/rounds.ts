/** Does the work from time to time, as long as the process runs anyway; the next round makes up for one that failed. */
export function startRounds(everyMs: number, work: () => Promise<void>): { stop(): void } {
  const timer = setInterval(() => work().catch(() => {}), everyMs)
  timer.unref()
  return { stop: () => clearInterval(timer) }
}
