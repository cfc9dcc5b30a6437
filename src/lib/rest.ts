/** Calls a service of this kind with an API key. */
export type Rest = {
  /** The address of the service, without a slash at its end. */
  url: string
  /** The path begins after /api/v1. Every call must be safe to repeat: temporary failures are retried. */
  call(method: string, path: string, body?: unknown): Promise<Answer>
}

type ErrorBody = { message?: string; details?: { path: string; message: string }[] }
type AnswerBody = {
  data?: unknown
  pagination?: { next_cursor?: string | null; total_count?: number; total_pages?: number }
  error?: ErrorBody
}
type Answer = { status: number; body: AnswerBody }

const timeoutMs = 30_000
const attempts = 4
const maxWaitSeconds = 10

export function openRest(address: string, key: string, signal: AbortSignal): Rest {
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
    const wait = Number(response.headers.get('retry-after') ?? 1)
    return { status: response.status, wait, body: parseAnswer(await response.text()) }
  }

  return {
    url,
    async call(method, path, body) {
      for (let attempt = 1; ; attempt += 1) {
        const answer = await send(method, path, body).catch((error: Error) => error)
        signal.throwIfAborted()
        const isTemporary = answer instanceof Error || answer.status >= 500 || answer.status === 429
        if (!isTemporary) return answer
        if (attempt === attempts) {
          if (answer instanceof Error) throw new Error(`${address} does not answer: ${answer.message}`)
          return answer
        }
        const seconds = answer instanceof Error ? 1 : Math.min(answer.wait || 1, maxWaitSeconds)
        await new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
      }
    },
  }
}

function parseAnswer(text: string): AnswerBody {
  try {
    const body = JSON.parse(text)
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

export function errorOf({ status, body: { error } }: Answer): Error {
  const details = (error?.details ?? []).map(({ path, message }) => `${path} ${message}`).join('; ')
  return new Error(`The service answered ${status}: ${error?.message ?? 'without a reason.'} ${details}`.trimEnd())
}
