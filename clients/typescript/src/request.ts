export interface ClientOptions {
  /** Where the service is, such as https://signals.example.com. */
  url: string
  key: string
  fetch?: (url: string, init: RequestInit) => Promise<Response>
  /** For each attempt. */
  timeoutMs?: number
  /** How often a failed request is sent again. */
  retries?: number
}

export interface CallOptions {
  signal?: AbortSignal
}

interface ServiceError {
  message: string
  code: string
  request_id: string
  details?: Detail[] | undefined
  limited_by?: string
  resets_at?: string
}

export interface Detail {
  path: string
  message: string
}

interface ErrorFields {
  status: number
  code: string
  requestId?: string | undefined
  details?: Detail[] | undefined
  limitedBy?: string | undefined
  resetsAt?: Date | undefined
  retryAfterMs?: number | undefined
}

/** `status` is 0 when there was no answer; `code` is then `network_error` or `timeout`. */
export class PromptSignalsError extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | undefined
  readonly details: Detail[]
  /** Which limit was reached, and when there is room again. */
  readonly limitedBy: string | undefined
  readonly resetsAt: Date | undefined
  readonly retryAfterMs: number | undefined

  constructor(message: string, given: ErrorFields, cause?: unknown) {
    super(message, { cause })
    this.name = 'PromptSignalsError'
    this.status = given.status
    this.code = given.code
    this.requestId = given.requestId
    this.details = given.details ?? []
    this.limitedBy = given.limitedBy
    this.resetsAt = given.resetsAt
    this.retryAfterMs = given.retryAfterMs
  }
}

export const defaultTimeoutMs = 10_000

/** Longer waits are left to the caller. */
const longestWaitMs = 10_000

/** Whether the same request may succeed later. A new month is too late. */
export const isTemporary = ({ status, limitedBy }: PromptSignalsError): boolean =>
  status === 0 || status === 408 || status >= 500 || (status === 429 && !limitedBy?.endsWith('month'))

/** Grows with the attempts, and differs between clients that failed together. */
export const waitMs = (attempt: number, retryAfterMs = 0): number =>
  Math.max(retryAfterMs, Math.min(250 * 2 ** attempt, longestWaitMs)) * (1 + Math.random() / 2)

interface RequestBody extends CallOptions {
  body?: unknown
  idempotencyKey?: string | undefined
  keepalive?: boolean
  isSentOnce?: boolean
}

export type Send = <Answer>(
  method: string,
  path: string,
  given: RequestBody,
  read: (response: Response) => Answer | Promise<Answer>,
) => Promise<Answer>

/** Sends requests, and sends them again while the failure is temporary, unless that could do something twice. */
export function createSend({ url, key, fetch: given, timeoutMs = defaultTimeoutMs, retries = 3 }: ClientOptions): Send {
  const root = `${url.replace(/\/+$/, '')}/api/v1`
  // A browser's fetch must be called without a receiver.
  const send = given ?? ((url: string, init: RequestInit) => fetch(url, init))

  async function attempt<Answer>(
    url: string,
    init: RequestInit,
    signal: AbortSignal | undefined,
    read: (response: Response) => Answer | Promise<Answer>,
  ): Promise<Answer> {
    const timeout = new AbortController()
    const timer = setTimeout(() => timeout.abort(), timeoutMs)
    try {
      const both = signal ? AbortSignal.any([signal, timeout.signal]) : timeout.signal
      const response = await send(url, { ...init, signal: both })
      if (!response.ok) throw errorOf(response.status, await readError(response), response.headers)
      return await read(response)
    } catch (error) {
      if (error instanceof PromptSignalsError) throw error
      signal?.throwIfAborted()
      const [message, code] = timeout.signal.aborted
        ? [`There was no answer within ${timeoutMs} ms.`, 'timeout']
        : [`The service could not be reached: ${error instanceof Error ? error.message : error}`, 'network_error']
      throw new PromptSignalsError(message, { status: 0, code }, error)
    } finally {
      clearTimeout(timer)
    }
  }

  return async (method, path, { body, idempotencyKey, signal, keepalive = false, isSentOnce = false }, read) => {
    // What cannot be sent at all throws here: it is not the service that fails, and another attempt would not help.
    const headers = new Headers({
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    })
    const init: RequestInit = {
      method,
      keepalive,
      // A redirect would turn a POST into a GET, whose answer is a success, too.
      redirect: 'manual',
      // A given fetch may add its own by spreading them.
      headers: Object.fromEntries(headers),
      // Every attempt sends the same text: with another one, the key would be that of another request.
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }
    for (let failures = 0; ; failures += 1) {
      try {
        return await attempt(root + path, init, signal, read)
      } catch (error) {
        if (isSentOnce || failures >= retries || !(error instanceof PromptSignalsError) || !isTemporary(error))
          throw error
        const { retryAfterMs = 0 } = error
        if (retryAfterMs > longestWaitMs) throw error
        await sleep(waitMs(failures, retryAfterMs), signal)
      }
    }
  }
}

/** The error of an answer, or of one signal in a batch. */
export const errorOf = (status: number, error: Partial<ServiceError> = {}, headers?: Headers): PromptSignalsError =>
  new PromptSignalsError(describe(error) ?? `The service answered with status ${status}.`, {
    status,
    code: error.code ?? 'unknown',
    requestId: error.request_id ?? headers?.get('x-request-id') ?? undefined,
    details: error.details,
    limitedBy: error.limited_by,
    resetsAt: error.resets_at === undefined ? undefined : new Date(error.resets_at),
    retryAfterMs: Number(headers?.get('retry-after') ?? 0) * 1_000 || undefined,
  })

const describe = ({ message, details = [] }: Partial<ServiceError>): string | undefined =>
  message && [message, details.map((one) => `${one.path} ${one.message}`).join('; ')].join(' ').trimEnd()

/** Undefined unless the service itself has answered: a proxy may answer in any form. */
async function readError(response: Response): Promise<ServiceError | undefined> {
  const answer = (await response.json().catch(() => null)) as { error?: ServiceError } | null
  return answer?.error?.request_id === undefined ? undefined : answer.error
}

export const dataOf = async <Data>(response: Response): Promise<Data> =>
  ((await response.json()) as { data: Data }).data

export const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
