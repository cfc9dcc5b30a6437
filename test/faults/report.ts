import type { Cleanups } from './cluster.ts'
import type { Findings } from './findings.ts'

const total = { passed: 0, failed: 0 }

/** Prints what checks found, and counts them as one. */
export function report(name: string, findings: Findings[]): void {
  const problems = findings.flatMap((one) => one.problems)
  total[problems.length === 0 ? 'passed' : 'failed']++
  console.log(`${problems.length === 0 ? 'pass' : 'FAIL'} ${name}: ${findings.map((one) => one.figures).join('; ')}`)
  for (const problem of problems) console.log(`     ${problem}`)
}

/** Runs the checks until a signal interrupts them, undoes everything, and exits with their result. */
export async function runChecks(
  check: (cleanups: Cleanups, orInterrupted: <T>(work: Promise<T>) => Promise<T>) => Promise<void>,
): Promise<never> {
  const cleanups: Cleanups = []
  const interruption = new Promise<never>((_, reject) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => reject(new Error(`Interrupted by ${signal}`)))
    }
  })
  // It may come when nobody waits for it: at the start, which has to end before it can be undone.
  interruption.catch(() => {})
  try {
    await check(cleanups, (work) => Promise.race([work, interruption]))
  } catch (error) {
    total.failed++
    console.error(error)
  }
  for (const cleanup of cleanups.reverse()) await cleanup().catch(console.error)
  console.log(`${total.passed} passed, ${total.failed} failed`)
  process.exit(total.failed === 0 ? 0 : 1)
}
