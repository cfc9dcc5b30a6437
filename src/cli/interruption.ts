// Ctrl-C: an interrupted command closes what it has opened, says what was and was not done, and ends.
import type { Db, Isolation, Sql } from '../db/client.ts'
import { isConnectionLost } from '../db/errors.ts'
import type { PermitRequest } from '../lib/semaphore.ts'

export type Interruption = {
  signal: AbortSignal
  /** 128 plus the number of the signal, as in shells. */
  status: number
  /** The database had not confirmed a change. */
  isUncertain: boolean
  /** The database had confirmed a change. */
  hasChanged: boolean
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
  const interruption: Interruption = { signal: controller.signal, status: 0, isUncertain: false, hasChanged: false }
  const interrupt = (signal: keyof typeof statuses) => {
    interruption.status ||= statuses[signal]
    controller.abort()
  }
  onSignals(['SIGHUP', 'SIGINT', 'SIGTERM'], interrupt, (signal) => process.exit(statuses[signal]))
  return interruption
}

/** Resolves with the work, or rejects `graceMs` after the interruption. The work itself is not stopped. */
export function untilInterrupted<T>({ signal }: Interruption, work: Promise<T>, graceMs = 10_000): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => setTimeout(reject, graceMs, signal.reason)
    if (signal.aborted) end()
    signal.addEventListener('abort', end, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', end))
  })
}

/** Makes statements fail after an interruption. `onWait` gets every pending answer that decides what was changed. */
export function interruptible(db: Db, interruption: Interruption, onWait: (answer: Promise<unknown>) => void): Db {
  const { signal } = interruption

  function waitFor<T>(answer: Promise<T>, isChange: () => boolean): Promise<T> {
    const note = () => {
      interruption.isUncertain ||= isChange()
    }
    signal.addEventListener('abort', note, { once: true })
    const forget = () => signal.removeEventListener('abort', note)
    const onAnswer = () => {
      forget()
      interruption.hasChanged ||= isChange()
    }
    const onFailure = (error: unknown) => {
      forget()
      if (isConnectionLost(error)) note()
    }
    answer.then(onAnswer, onFailure)
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
    transaction: <T>(work: (sql: Sql) => Promise<T>, ...options: [PermitRequest?, Isolation?]) => {
      let isCommitting = false
      const answer: Promise<T> = db.transaction(
        async (sql) => {
          const result = await work(wrap(sql, true))
          signal.throwIfAborted()
          isCommitting = true
          onWait(answer)
          return result
        },
        ...options,
      )
      return waitFor(answer, () => isCommitting)
    },
  }
}
