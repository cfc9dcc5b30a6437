import { isatty } from 'node:tty'

/** A line on standard error that is rewritten in place. Shown only on a terminal. */
export type Progress = {
  /** Shows a count and, if the share of the whole is known, the time left. */
  count(done: number, noun: string, share?: number | null): void
  /** Shows a phase without a known length, and how long it has been running. */
  begin(phase: string): void
  /** Clears the line before other output. */
  end(): void
}

const everyMs = 200
const noProgress: Progress = { count() {}, begin() {}, end() {} }

export function createProgress(): Progress {
  if (!isatty(2)) return noProgress
  const startedAt = performance.now()
  let shownAt = Number.NEGATIVE_INFINITY
  let ticking: ReturnType<typeof setInterval> | undefined

  function show(text: string): void {
    shownAt = performance.now()
    process.stderr.write(`\r${text}\u001b[K`)
  }

  return {
    count(done, noun, share = null) {
      const now = performance.now()
      if (!ticking && now - shownAt >= everyMs) show(describeCount(done, noun, share, now - startedAt))
    },
    begin(phase) {
      clearInterval(ticking)
      const beganAt = performance.now()
      const tick = () => show(`${phase}, ${formatSeconds(performance.now() - beganAt)}`)
      ticking = setInterval(tick, 1_000)
      tick()
    },
    end() {
      clearInterval(ticking)
      if (shownAt > 0) process.stderr.write('\r\u001b[K')
      shownAt = Number.NEGATIVE_INFINITY
    },
  }
}

/** Leaves out an estimate beyond the whole, and one of the first second, which would be too rough. */
export function describeCount(done: number, noun: string, share: number | null, elapsedMs: number): string {
  const count = `${done.toLocaleString('en')} ${noun}`
  if (share === null || share <= 0 || share > 1) return count
  const percent = `${count}, ${Math.floor(share * 100)} %`
  return elapsedMs < 1_000 ? percent : `${percent}, about ${formatSeconds((elapsedMs * (1 - share)) / share)} left`
}

function formatSeconds(ms: number): string {
  const seconds = Math.round(ms / 1_000)
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}
