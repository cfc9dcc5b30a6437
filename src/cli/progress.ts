import { isatty } from 'node:tty'

/** A line on standard error that is rewritten in place. Shown only on a terminal. */
export type Progress = {
  /** Shows a count and, if the share of the whole is known, the time left. */
  count(done: number, noun: string, share?: number | null): void
  end(): void
}

const everyMs = 200

export function createProgress(): Progress {
  if (!isatty(2)) return { count() {}, end() {} }
  const startedAt = performance.now()
  let shownAt = Number.NEGATIVE_INFINITY

  return {
    count(done, noun, share = null) {
      const now = performance.now()
      if (now - shownAt < everyMs) return
      shownAt = now
      process.stderr.write(`\r${describeCount(done, noun, share, now - startedAt)}\u001b[K`)
    },
    end() {
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
