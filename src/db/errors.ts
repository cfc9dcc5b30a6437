// What the driver's errors mean, and what they say of the database. This file does not load the driver itself.
import type { UnavailableReason } from '../errors.ts'
import { DeadlineError } from '../lib/deadline.ts'

type PostgresError = Error & { code: string }

/** Whether Postgres itself returned the error for a statement. */
export const isPostgresError = (error: unknown): error is PostgresError =>
  error instanceof Error && error.name === 'PostgresError'

/** Why a statement wrote nothing: its data, or rows that other transactions had locked for too long. */
export function classifyError(error: unknown): 'bad_row' | 'lock_timeout' | undefined {
  if (!isPostgresError(error)) return undefined
  if (/^2[23]/.test(error.code)) return 'bad_row'
  return ['55P03', '40P01', '40001'].includes(error.code) ? 'lock_timeout' : undefined
}

/** Thrown for a database that can only be read: a standby, or one that was set so. */
export class ReadOnlyError extends Error {
  constructor() {
    super('the database is read-only (a standby, or default_transaction_read_only is on)')
  }
}

/** Thrown when none of several hosts can be written to, with the reason of each. */
export class NoPrimaryError extends Error {
  readonly code: string
  constructor(reasons: [host: string, reason: unknown][]) {
    super(`no host is a primary: ${reasons.map(([host, reason]) => `${host} (${reasonOf(reason)})`).join(', ')}`)
    this.code = reasons.some(([, reason]) => isReadOnly(reason)) ? 'TARGET_SESSION_ATTRS' : 'CONNECT_FAILED'
  }
}

/** Thrown by the embedded engine after a failure; only a restart helps. */
export class StoppedError extends Error {}

const downCodes = /^(08|25006|28|3D|53|57P)/
/** Codes of the driver, the network and TLS. */
const unreachableCodes =
  /^(CONNECT|TARGET_SESSION_ATTRS|E(CONN|HOST|NET|PIPE|TIMEDOUT|NOTFOUND|AI_)|UNABLE_TO_|(ERR_)?(TLS|SSL|CERT))/

/** Whether the error shows that the database cannot be used at all. */
export const isDown = (error: unknown): boolean =>
  error instanceof StoppedError ||
  error instanceof ReadOnlyError ||
  (isPostgresError(error) ? downCodes : unreachableCodes).test(codeOf(error) ?? '')

/** Of errors that are foreseen, why the request cannot be served now. A session idle for too long was held up by us. */
export function whyUnavailable(error: unknown): UnavailableReason | undefined {
  if (isDown(error)) return 'database'
  const isLate = error instanceof DeadlineError || ['57014', '25P03'].includes(codeOf(error) ?? '')
  return isLate || classifyError(error) === 'lock_timeout' ? 'timeout' : undefined
}

/** Whether Postgres rejected a write, or the driver rejected a session that cannot write. */
export const isReadOnly = (error: unknown): boolean =>
  error instanceof ReadOnlyError || codeOf(error) === '25006' || codeOf(error) === 'TARGET_SESSION_ATTRS'

/** The runtime only says that the connection was closed. */
const noTls = 'the server closed the connection when TLS began: turn TLS on there, or set sslmode=disable'

/** Why the database cannot be used, in a few words. */
export function reasonOf(error: unknown): string {
  if (isReadOnly(error) && !(error instanceof NoPrimaryError)) return new ReadOnlyError().message
  if (error instanceof Error && error.message.includes('before secure TLS connection')) return noTls
  return error instanceof Error ? error.message : String(error)
}

/** Whether a pooler, such as PgBouncer, rejected a setting that the session starts with. */
export const isRejectedByPooler = (error: unknown): boolean =>
  isPostgresError(error) && error.message.startsWith('unsupported startup parameter')

/** Whether the connection was lost that a statement was sent on. The statement may have been carried out. */
export const isConnectionLost = (error: unknown): boolean =>
  ['CONNECTION_CLOSED', 'ECONNRESET', 'EPIPE'].includes(codeOf(error) ?? '')

/** Whether the connection was lost or ended by the server, or another could not be opened in its place. */
export const isUnreachable = (error: unknown): boolean => /^(CONNECT|ECONN|EPIPE|57P0)/.test(codeOf(error) ?? '')

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined

/** Called when the database stops answering or is found to be read-only, and when it serves again. */
export type OnAvailability = (isUp: boolean, reason: string) => void

/** How long no statement may fail before the database is up again: on a full disk, reads are answered between writes. */
const calmMs = 3_000

/** Derives from the outcomes of statements whether the database can be reached. */
export function createAvailabilityTracker(onAvailability: OnAvailability) {
  /** Undefined before the first answer, because a database that was never reached cannot be lost. */
  let isUp: boolean | undefined
  let isKnownReadOnly = false
  let answeredAt = 0
  let failedAt = 0

  function answered(): void {
    answeredAt = performance.now()
    if (isUp === false && answeredAt - failedAt < calmMs) return
    if (isUp === false) onAvailability(true, '')
    isUp = true
    isKnownReadOnly = false
  }

  return {
    answered,
    failed(error: unknown, sentAt: number) {
      // Most errors that it returns for a statement show that it is up.
      if (isPostgresError(error) && !isDown(error)) return answered()
      // A statement that times out while others are answered waits for a lock.
      if (error instanceof DeadlineError && answeredAt > sentAt) return
      failedAt = performance.now()
      // A failover begins with lost connections, and only later is the server found to be the wrong one.
      const isChange = isUp === true || (isUp === false && isReadOnly(error) && !isKnownReadOnly)
      if (!isChange) return
      isUp = false
      isKnownReadOnly = isReadOnly(error)
      onAvailability(false, reasonOf(error))
    },
  }
}
