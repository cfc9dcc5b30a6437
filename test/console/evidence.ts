// A prompt with two changes and the signals of four weeks, of which the second change is one for the better.
import { addSignals, deployed, merged, rollUp, type Sent } from '../impact/history.ts'
import type { TestService } from '../service.ts'

const dayMs = 86_400_000

export const daysAgo = (days: number): string => new Date(Date.now() - days * dayMs).toISOString()

export async function addEvidence(service: TestService, prompt: string): Promise<void> {
  await service.addHistory(prompt, [
    deployed('8f14e45fceea167a5a36dedd4bea2543f1c0a9d2', daysAgo(28)),
    merged('45c48cce2e2d7fbdea1afc51c7c6ad26b0d94e11', daysAgo(10), 7),
  ])
  await addSignals(service, prompt, [...signalsOf(27, 10.5, 0.6), ...signalsOf(9.3, 0, 0.9)])
  await rollUp(service, prompt)
}

/**
 * Forty a day, of which each run of ten has as many positive ones as the rate says. A day that is over has forty wherever it
 * begins, unless the signals end in it.
 */
function signalsOf(fromDaysAgo: number, untilDaysAgo: number, rate: number): Sent[] {
  const count = Math.round((fromDaysAgo - untilDaysAgo) * 40)
  return Array.from({ length: count }, (_, index) => ({
    value: index % 10 < rate * 10 ? 'positive' : 'negative',
    at: daysAgo(fromDaysAgo - index / 40),
  }))
}
