import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { ClockSkewError, readTrustedTime } from '../db/prune.ts'
import { pruneGithub } from '../github/settings.ts'
import { runPeriodically } from '../lib/periodic.ts'
import type { Log } from '../log.ts'
import { pruneIdempotencyKeys } from '../signals/record.ts'
import { pruneEvents } from '../webhooks/events.ts'

export type PruningObserver = {
  /** Called with the seconds by which the clock of this process is ahead of the database's. */
  skewed(seconds: number): void
  /** Called with the number of signals that a retention has erased. */
  expired(signals: number): void
}

type Options = { db: Db; clock: Clock; log: Log; observer: PruningObserver; isStopping(): boolean }

const everyMs = 10 * 60_000
/** A wrong clock counts signals in the wrong month, so it is noticed sooner than by the next pruning. */
const measureEveryMs = 60_000

/**
 * Deletes expired rows at intervals, and compares the clocks more often. Each table has its own timer, so that a failing
 * pruning does not stop the others.
 */
export function startPruning({ db, clock, log, observer, isStopping }: Options) {
  let applyRetentions: Promise<(now: Date) => Promise<void>> | undefined
  const prunings: Record<string, (now: Date) => Promise<void>> = {
    idempotency_keys: (now) => pruneIdempotencyKeys(db, now),
    github: (now) => pruneGithub(db, now),
    events: (now) => pruneEvents(db, now),
    async signals(now) {
      applyRetentions ??= import('../signals/erase.ts').then(({ createRetentions }) =>
        createRetentions(db, { isStopping, onErased: observer.expired }),
      )
      await (await applyRetentions)(now)
    },
  }
  const readTime = () => readTrustedTime(db.sql, clock, observer.skewed)
  const measureSkew = async () => void (await readTime())
  measureSkew().catch(() => {})
  const timers = Object.entries(prunings).map(([pruning, prune]) =>
    runPeriodically(
      everyMs,
      async () => prune(await readTime()),
      (err) => {
        if (err instanceof ClockSkewError)
          log.error({ pruning, skew_seconds: err.seconds }, 'pruning refused: clocks differ')
        else log.error({ pruning, err }, 'pruning expired rows failed; will retry')
      },
    ),
  )
  return [runPeriodically(measureEveryMs, measureSkew), ...timers]
}
