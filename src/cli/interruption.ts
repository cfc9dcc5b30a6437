// Ctrl-C: an interrupted command closes what it has opened, and ends.
import type { Db, Isolation, Sql } from '../db/client.ts'
import type { PermitRequest } from '../lib/concurrency.ts'

export type Interruption = {
  signal: AbortSignal
  /** 128 plus the number of the signal, as in shells. */
  status: number
  /** Why the embedded database stopped. */
  stopReason?: string
}

const statuses = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const
/** A terminal signals every process in it, and a parent such as npx forwards its signal. Both count as one signal. */
const sameSignalMs = 500

/** Calls `onFirst` for the first of these signals, and `onLater` for later ones. */
export function onSignals<S extends NodeJS.Signals>(
  signals: S[],
  onFirst: (signal: S) => void,
  onLater: (signal: S) => void,
): void {
  let firstAt: number | undefined
  for (const signal of signals) {
    process.on(signal, () => {
      firstAt ??= performance.now()
      if (performance.now() - firstAt > sameSignalMs) onLater(signal)
      else onFirst(signal)
    })
  }
}

/** Listens for the signals that end a program. A second one ends it immediately. */
export function listenForInterruption(): Interruption {
  const controller = new AbortController()
  const interruption: Interruption = { signal: controller.signal, status: 0 }
  const interrupt = (signal: keyof typeof statuses) => {
    interruption.status ||= statuses[signal]
    controller.abort()
  }
  onSignals(['SIGHUP', 'SIGINT', 'SIGTERM'], interrupt, (signal) => process.exit(statuses[signal]))
  return interruption
}

/** Resolves with the work, or rejects `graceMs` after the interruption. The work itself is not stopped. */
export function untilInterrupted<T>(signal: AbortSignal, work: Promise<T>, graceMs = 10_000): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => setTimeout(reject, graceMs, signal.reason)
    if (signal.aborted) end()
    signal.addEventListener('abort', end, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', end))
  })
}

/** Makes statements fail after an interruption, so that a command ends soon. */
export function interruptible(db: Db, { signal }: Interruption): Db {
  const guard = <T>(start: () => Promise<T>): Promise<T> => {
    signal.throwIfAborted()
    return untilInterrupted(signal, start(), 0)
  }
  const wrap = (sql: Sql): Sql =>
    Object.assign(
      <Row extends object>(text: TemplateStringsArray, ...values: unknown[]) => guard(() => sql<Row>(text, ...values)),
      {
        dynamic: <Row extends object>(text: string, values?: string[]) => guard(() => sql.dynamic<Row>(text, values)),
        script: (text: string) => guard(() => sql.script(text)),
      },
    )
  return {
    ...db,
    sql: wrap(db.sql),
    transaction: <T>(work: (sql: Sql) => Promise<T>, ...options: [PermitRequest?, Isolation?]) =>
      guard(() => db.transaction((sql) => work(wrap(sql)), ...options)),
  }
}
