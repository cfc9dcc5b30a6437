import type { BatchResult } from '../history/batch.ts'
import { dataOf, errorOf, type Rest } from '../lib/rest.ts'
import { type EntriesPage, historyQuery, type LinkedFile, type SyncTarget } from './target.ts'

type PromptShown = { id: string; repository: string | null; path: string | null }

/** Every call is safe to repeat, because a file has one prompt. */
export function openHttpTarget({ call }: Rest): SyncTarget {
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
