// Ctrl-C: a command that is interrupted closes what it has opened, says what was and was not done, and ends.
import type { Db, Sql } from '../db/client.ts'

export type Interruption = {
  signal: AbortSignal
  /** The exit status of an interrupted command: 128 and the number of the signal, as shells have it. */
  status: number
  /** Whether the database had not yet answered to a change when the interruption came. */
  isUncertain: boolean
}

const statuses = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const
/** A terminal signals every process in it, and a parent such as npx passes its own signal on: that is still one. */
const sameSignalMs = 500
/** How long an interrupted command may take to close what it has opened. */
const unwindMs = 10_000

/** Handles the first of these signals, and differently any that comes later. */
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
  const interruption: Interruption = { signal: controller.signal, status: 0, isUncertain: false }
  const interrupt = (signal: keyof typeof statuses) => {
    interruption.status ||= statuses[signal]
    controller.abort()
  }
  onSignals(['SIGHUP', 'SIGINT', 'SIGTERM'], interrupt, (signal) => process.exit(statuses[signal]))
  return interruption
}

/** The result of the work, or an error so long after the interruption. The work itself is not stopped. */
export function untilInterrupted<T>({ signal }: Interruption, work: Promise<T>, graceMs = unwindMs): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => setTimeout(reject, graceMs, signal.reason)
    if (signal.aborted) end()
    signal.addEventListener('abort', end, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', end))
  })
}

/**
 * A database whose statements fail once the command is interrupted, so that the command unwinds: a transaction is rolled
 * back, and no statement is sent after it. `onWait` is given each wait for an answer that decides what was done.
 */
export function interruptible(db: Db, interruption: Interruption, onWait: (answer: Promise<unknown>) => void): Db {
  const { signal } = interruption

  /** Waits for the answer, and notes an interruption that comes before it. */
  function waitFor<T>(answer: Promise<T>, isChange: () => boolean): Promise<T> {
    const note = () => {
      interruption.isUncertain ||= isChange()
    }
    signal.addEventListener('abort', note, { once: true })
    const forget = () => signal.removeEventListener('abort', note)
    answer.then(forget, forget)
    return untilInterrupted(interruption, answer, 0)
  }

  function wrap(sql: Sql, isTransaction: boolean): Sql {
    const send = <T>(text: string, statement: () => Promise<T>): Promise<T> => {
      signal.throwIfAborted()
      const answer = statement()
      if (!isTransaction) onWait(answer)
      return waitFor(answer, () => !isTransaction && !/^\s*select\b/i.test(text))
    }
    return Object.assign(
      <Row extends object>(text: TemplateStringsArray, ...values: unknown[]) =>
        send(text[0] ?? '', () => sql<Row>(text, ...values)),
      {
        dynamic: <Row extends object>(text: string, values?: string[]) =>
          send(text, () => sql.dynamic<Row>(text, values)),
        script: (text: string) => send(text, () => sql.script(text)),
      },
    )
  }

  return {
    ...db,
    sql: wrap(db.sql, false),
    transaction: <T>(work: (sql: Sql) => Promise<T>) => {
      let isCommitting = false
      const answer: Promise<T> = db.transaction(async (sql) => {
        const result = await work(wrap(sql, true))
        signal.throwIfAborted()
        isCommitting = true
        onWait(answer)
        return result
      })
      return waitFor(answer, () => isCommitting)
    },
  }
}
