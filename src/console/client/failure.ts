/** Why there is no answer, or not the one asked for. Each kind has its own words on the page. */
export type Failure =
  | { kind: 'offline' }
  | { kind: 'signed out' }
  | { kind: 'forbidden'; scope: string }
  | { kind: 'missing' }
  | { kind: 'invalid'; message: string; details: { path: string; message: string }[] }
  | { kind: 'limited'; againAt: Date | undefined }
  | { kind: 'failed'; requestId: string | undefined }

export class RequestFailed extends Error {
  constructor(readonly failure: Failure) {
    super(failure.kind)
  }
}

type Envelope = {
  error?: {
    message?: string
    scope?: string
    request_id?: string
    details?: { path: string; message: string }[]
  }
}

/** Reads the one shape that all errors of the service have; what stands between may answer with any other. */
export function failureOf(response: Response, body: unknown): Failure {
  const { error = {} } = (typeof body === 'object' && body !== null ? body : {}) as Envelope
  const requestId = error.request_id ?? response.headers.get('x-request-id') ?? undefined
  if (response.status === 401) return { kind: 'signed out' }
  if (response.status === 403 && error.scope) return { kind: 'forbidden', scope: error.scope }
  if (response.status === 404) return { kind: 'missing' }
  if (response.status === 422) return { kind: 'invalid', message: error.message ?? '', details: error.details ?? [] }
  if (response.status === 429) return { kind: 'limited', againAt: readRetryAfter(response) }
  return { kind: 'failed', requestId }
}

function readRetryAfter({ headers }: Response): Date | undefined {
  const seconds = headers.get('retry-after')
  return seconds === null ? undefined : new Date(Date.now() + Number(seconds) * 1_000)
}
