/** The closed list of error codes, and the one place that gives each its HTTP status. */
export const statusOfCode = {
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  validation_error: 422,
  rate_limited: 429,
  internal_error: 500,
} as const

export type ErrorCode = keyof typeof statusOfCode

export type Detail = { path: string; message: string }

/** The limit that a request has exceeded: one of signals in a month, or one of requests in a short time. */
export const limits = ['organisation_month', 'key_month', 'key_rate', 'address_rate'] as const
export type LimitedBy = (typeof limits)[number]

/** Extra context shown to the caller beside the code and the message. */
type ErrorContext = {
  /** The scope that the key lacks. */
  scope?: string
  limited_by?: LimitedBy
  details?: Detail[]
  limit?: number
  used?: number
  resets_at?: string
}

/** An error as the caller sees it, whether it was thrown or returned. */
export type ApiError = { code: ErrorCode; message: string; context: ErrorContext; headers: Record<string, string> }

/** The only error that callers see; anything else thrown becomes `internal_error` without its text. */
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

/** One text for everything that is absent: the answer must not reveal that another organisation has such a prompt. */
export const notFound = (headers: Record<string, string> = {}) =>
  new ServiceError(
    'not_found',
    'There is nothing here. Check the path, and that the prompt belongs to the organisation of this key.',
    {},
    headers,
  )

/** The error for what cannot be done just now; it says when to try again. */
export const unavailable = (
  message = 'The service could not complete the request. Try again shortly.',
  retryAfterSeconds = 1,
) => new ServiceError('internal_error', message, {}, { 'retry-after': String(retryAfterSeconds) })
