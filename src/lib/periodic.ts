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

/** The number of rows of the next step, after one that took this part of the time that a step may take. */
export const nextStepRows = (rows: number, part: number, minRows: number, maxRows: number): number => {
  if (part > 1) return Math.max(minRows, Math.floor(rows / 2))
  return part < 0.4 ? Math.min(maxRows, rows * 2) : rows
}

/** Sleeps for as long as the step took, so that background work uses at most half of the database's time. */
export const yieldFor = (startedAt: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, performance.now() - startedAt))

/** Repeats a step until it handles fewer than `fullStep` rows, and yields to other work after each. Returns the total. */
export async function repeatStep(fullStep: number, step: () => Promise<number>): Promise<number> {
  for (let total = 0; ; ) {
    const startedAt = performance.now()
    const rows = await step()
    total += rows
    if (rows < fullStep) return total
    await yieldFor(startedAt)
  }
}
