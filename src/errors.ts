/** The closed list of error codes, with their HTTP statuses. */
export const statusOfCode = {
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  validation_error: 422,
  rate_limited: 429,
  internal_error: 500,
  unavailable: 503,
} as const

export type ErrorCode = keyof typeof statusOfCode

export type Detail = { path: string; message: string }

export const limits = ['organisation_month', 'key_month', 'key_rate', 'address_rate', 'organisation_rate'] as const
export type LimitedBy = (typeof limits)[number]

type ErrorContext = {
  scope?: string
  limited_by?: LimitedBy
  details?: Detail[]
  limit?: number
  used?: number
  resets_at?: string
}

/** An error as the client sees it, thrown or returned. */
export type ApiError = { code: ErrorCode; message: string; context: ErrorContext; headers: Record<string, string> }

/** The only error whose message clients see. Anything else thrown becomes `internal_error`. */
export class ServiceError extends Error implements ApiError {
  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly context: ErrorContext = {},
    readonly headers: Record<string, string> = {},
  ) {
    super(message)
  }
}

export const forbidden = (scope: string) =>
  new ServiceError('forbidden', `This API key lacks the scope ${scope}. Use a key that has it.`, { scope })

export const invalid = (message: string, details: Detail[]) =>
  new ServiceError('validation_error', message, { details })

/** The same message for everything: it must not reveal that another organisation has such a prompt. */
export const notFound = (headers: Record<string, string> = {}) =>
  new ServiceError(
    'not_found',
    'Not found. Check the path, and that the prompt belongs to the organisation of this key.',
    {},
    headers,
  )

const tryAgain = 'The service could not complete the request. Try again shortly.'

/** For what was not foreseen. */
export const internalError = () => new ServiceError('internal_error', tryAgain, {}, { 'retry-after': '1' })

/**
 * Why a request cannot be served now. `overload`: a queue or a share is full. `timeout`: a lock, a queue or the database
 * took too long. `database`: it cannot be reached or written to.
 */
export const unavailableReasons = ['overload', 'timeout', 'database'] as const
export type UnavailableReason = (typeof unavailableReasons)[number]

export class UnavailableError extends ServiceError {
  constructor(
    readonly reason: UnavailableReason,
    message: string,
    retryAfterSeconds: number,
  ) {
    super('unavailable', message, {}, { 'retry-after': String(retryAfterSeconds) })
  }
}

export const unavailable = (reason: UnavailableReason, message = tryAgain, retryAfterSeconds = 1) =>
  new UnavailableError(reason, message, retryAfterSeconds)
