import { type Detail, ServiceError } from '../errors.ts'
import { keepExactNumbers } from './json.ts'
import { maxPageSize } from './params.ts'

/** Calls an operation. The path begins after /api/v1. */
export type Call = (method: string, path: string, body?: unknown) => Promise<Answer>

type ErrorBody = { message?: string; details?: Detail[] }
type AnswerBody = {
  data?: unknown
  pagination?: { next_cursor?: string | null; total_count?: number; total_pages?: number }
  error?: ErrorBody
}
/** An export has only a text. */
export type Answer = { status: number; text: string; body: AnswerBody }

const timeoutMs = 30_000
const attempts = 4
const maxWaitSeconds = 10

/** Calls a service with an API key. Temporary failures are retried if the call is safe to repeat. */
export function openRest(address: string, key: string, signal: AbortSignal): Call {
  const url = address.replace(/\/+$/, '')

  async function send(method: string, path: string, body?: unknown) {
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      // A redirect would send the key to another address.
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    })
    return { wait: Number(response.headers.get('retry-after') ?? 1), ...(await parseAnswer(response)) }
  }

  return async (method, path, body) => {
    for (let attempt = 1; ; attempt += 1) {
      const answer = await send(method, path, body).catch((error: Error) => error)
      signal.throwIfAborted()
      const isTemporary = answer instanceof Error || answer.status >= 500 || answer.status === 429
      if (!isTemporary) return answer
      if (attempt === attempts || !isRepeatable(method, path, body)) {
        if (answer instanceof Error) throw new Error(`${address} does not answer: ${answer.message}`)
        return answer
      }
      const seconds = answer instanceof Error ? 1 : Math.min(answer.wait || 1, maxWaitSeconds)
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
    }
  }
}

/** A history has an entry once, and a file one prompt. Other things would be created twice. */
function isRepeatable(method: string, path: string, body: unknown): boolean {
  const { pathname } = new URL(path, 'http://localhost')
  const isLinked = pathname === '/prompts' && Boolean((body as { repository?: string } | undefined)?.repository)
  return method !== 'POST' || isLinked || /\/history(\/batch)?$/.test(pathname)
}

export async function parseAnswer(response: Response): Promise<Answer> {
  const text = await response.text()
  return { status: response.status, text, body: parseBody(response, text) }
}

function parseBody({ status, headers }: Response, text: string): AnswerBody {
  if (status < 300 && /^(application\/x-ndjson|text\/csv)/.test(headers.get('content-type') ?? '')) return {}
  try {
    const body = JSON.parse(text, keepExactNumbers)
    if (typeof body === 'object' && body !== null && ('data' in body || 'error' in body)) return body
  } catch {
    // Reported below.
  }
  return { error: { message: 'This is not how the service answers. Check the address.' } }
}

export function dataOf<T>(answer: Answer): T {
  if (answer.status >= 300 || answer.body.error) throw errorOf(answer)
  return answer.body.data as T
}

export async function* readRows<T>(call: Call, path: string, query: Record<string, string> = {}): AsyncGenerator<T> {
  for (let cursor: string | null = ''; cursor !== null; ) {
    const search = new URLSearchParams({ ...query, limit: `${maxPageSize}`, ...(cursor && { cursor }) })
    const answer = await call('GET', `${path}?${search}`)
    yield* dataOf<T[]>(answer)
    cursor = answer.body.pagination?.next_cursor ?? null
  }
}

export function errorOf({ status, body: { error } }: Answer): ServiceError {
  const message = `The service answered ${status}: ${error?.message ?? 'without a reason.'}`
  return new ServiceError('internal_error', message, { details: error?.details ?? [] })
}
