import type { BatchResult } from '../history/batch.ts'
import { type EntriesPage, historyQuery, type LinkedFile, type SyncTarget } from './target.ts'

type ErrorBody = { message?: string; details?: { path: string; message: string }[] }
type AnswerBody = { data?: unknown; pagination?: { next_cursor?: string | null }; error?: ErrorBody }
type Answer = { status: number; body: AnswerBody }
type PromptShown = { id: string; repository: string | null; path: string | null }

const timeoutMs = 30_000
const attempts = 4
const maxWaitSeconds = 10

/** Calls the service at `url` with an API key. */
export function openHttpTarget(url: string, key: string, signal: AbortSignal): SyncTarget {
  const base = `${url.replace(/\/+$/, '')}/api/v1`

  async function send(method: string, path: string, body?: unknown) {
    const response = await fetch(`${base}${path}`, {
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

  /** Retries temporary failures: every call is safe to repeat, because a file has one prompt. */
  async function call(method: string, path: string, body?: unknown): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      const answer = await send(method, path, body).catch((error: Error) => error)
      signal.throwIfAborted()
      const isTemporary = answer instanceof Error || answer.status >= 500 || answer.status === 429
      if (!isTemporary) return answer
      if (attempt === attempts) {
        if (answer instanceof Error) throw new Error(`${url} does not answer: ${answer.message}`)
        return answer
      }
      const seconds = answer instanceof Error ? 1 : Math.min(answer.wait || 1, maxWaitSeconds)
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
    }
  }

  return {
    async listLinked(repository) {
      const found: LinkedFile[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const query = new URLSearchParams({ limit: '100', archived: 'all', ...(cursor ? { cursor } : {}) })
        const answer = await call('GET', `/prompts?${query}`)
        for (const { id, path, ...prompt } of dataOf<PromptShown[]>(answer)) {
          if (path && prompt.repository === repository) found.push({ id, path })
        }
        cursor = answer.body.pagination?.next_cursor ?? null
      }
      return found.reverse()
    },
    async createPrompt(name, repository, path) {
      return dataOf<PromptShown>(await call('POST', '/prompts', { name, repository, path })).id
    },
    async moveLink(id, repository, path) {
      const answer = await call('PATCH', `/prompts/${id}`, { repository, path })
      if (answer.status === 403) return errorOf(answer).message
      dataOf(answer)
      return null
    },
    async recordBatch(batch) {
      return dataOf<BatchResult>(await call('POST', '/history/batch', batch))
    },
    async readHistory(id, page) {
      const answer = await call('GET', `/prompts/${id}/history${historyQuery(page)}`)
      if (answer.status === 403) return null
      dataOf(answer)
      return answer.body as EntriesPage
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

function dataOf<T>(answer: Answer): T {
  if (answer.status >= 300 || answer.body.error) throw errorOf(answer)
  return answer.body.data as T
}

function errorOf({ status, body: { error } }: Answer): Error {
  const details = (error?.details ?? []).map(({ path, message }) => `${path} ${message}`).join('; ')
  return new Error(`The service answered ${status}: ${error?.message ?? 'without a reason.'} ${details}`.trimEnd())
}
