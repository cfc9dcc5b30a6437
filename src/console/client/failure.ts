type Details = { path: string; message: string }[]

/** Why there is no answer, or not the one asked for. Each kind has its own words on the page. */
export type Failure =
  | { kind: 'offline' }
  | { kind: 'signed out' }
  | { kind: 'forbidden'; scope?: string | undefined; message?: string }
  | { kind: 'missing' }
  | { kind: 'invalid'; message: string; details: Details }
  | { kind: 'limited'; againAt: Date | undefined }
  | { kind: 'unavailable' }
  | { kind: 'failed'; requestId: string | undefined }

export class RequestFailed extends Error {
  constructor(readonly failure: Failure) {
    super(failure.kind)
  }
}

export function readFailure(error: unknown): Failure {
  if (error instanceof RequestFailed) return error.failure
  throw error
}

type Envelope = { error?: { message?: string; scope?: string; request_id?: string; details?: Details } }

/** Reads the one shape that all errors of the service have; what stands between may answer with any other. */
export function failureOf({ status, headers }: Response, body: unknown): Failure {
  const { error = {} } = (typeof body === 'object' && body !== null ? body : {}) as Envelope
  const { message = '', details = [], scope, request_id } = error
  // A proxy may send a date instead of seconds.
  const seconds = Number(headers.get('retry-after') ?? Number.NaN)
  const againAt = Number.isNaN(seconds) ? undefined : new Date(Date.now() + seconds * 1_000)
  if (status === 401) return { kind: 'signed out' }
  if (status === 403 && (scope || message)) return { kind: 'forbidden', scope, message }
  if (status === 404) return { kind: 'missing' }
  if (status === 422) return { kind: 'invalid', message, details }
  if (status === 429) return { kind: 'limited', againAt }
  if (status === 503) return { kind: 'unavailable' }
  return { kind: 'failed', requestId: request_id ?? headers.get('x-request-id') ?? undefined }
}
