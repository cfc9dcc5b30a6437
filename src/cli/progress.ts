import { isatty } from 'node:tty'
import { number } from '../lib/texts.ts'

/** A line on standard error that is rewritten in place. Shown only on a terminal. */
export type Progress = {
  /** Shows a count and, if it is known, the share of the whole. */
  count(done: number, noun: string, share?: number | null): void
  end(): void
}

const everyMs = 200

export function createProgress(): Progress {
  if (!isatty(2)) return { count() {}, end() {} }
  let shownAt = Number.NEGATIVE_INFINITY

  return {
    count(done, noun, share = null) {
      const now = performance.now()
      if (now - shownAt < everyMs) return
      shownAt = now
      process.stderr.write(`\r${describeCount(done, noun, share)}\u001b[K`)
    },
    end() {
      if (shownAt > 0) process.stderr.write('\r\u001b[K')
      shownAt = Number.NEGATIVE_INFINITY
    },
  }
}

/** Leaves out a share beyond the whole. */
export function describeCount(done: number, noun: string, share: number | null): string {
  const count = `${number(done)} ${noun}`
  return share === null || share <= 0 || share > 1 ? count : `${count}, ${Math.floor(share * 100)} %`
}
