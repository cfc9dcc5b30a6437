import { dataOf, type Rest } from '../lib/rest.ts'
import type { Impact } from './schema.ts'
import type { SideBySide } from './schema_compare.ts'

export type PromptName = { id: string; name: string }

/** What commands read, by the queries of the interface: implemented over the database and over HTTP. */
export type ImpactSource = {
  readImpact(
    prompt: string,
    query: URLSearchParams,
  ): Promise<{ prompt: PromptName; totalCount: number; data: Impact[] }>
  readCompare(prompt: string, query: URLSearchParams): Promise<SideBySide>
  /** A page of prompts and their live changes. */
  listPrompts(
    query: URLSearchParams,
  ): Promise<{ data: { prompt: PromptName; latest: Impact | null }[]; nextCursor: string | null }>
}

type ImpactBody = { prompt: PromptName; pagination: { total_count: number } }

export function openHttpSource({ call }: Rest): ImpactSource {
  const pathOf = (prompt: string) => `/prompts/${encodeURIComponent(prompt)}`
  return {
    async readImpact(prompt, query) {
      const answer = await call('GET', `${pathOf(prompt)}/impact?${query}`)
      const data = dataOf<Impact[]>(answer)
      const { prompt: shown, pagination } = answer.body as ImpactBody
      return { prompt: shown, totalCount: pagination.total_count, data }
    },
    readCompare: async (prompt, query) => dataOf(await call('GET', `${pathOf(prompt)}/compare?${query}`)),
    async listPrompts(query) {
      const answer = await call('GET', `/impact?${query}`)
      return { data: dataOf(answer), nextCursor: answer.body.pagination?.next_cursor ?? null }
    },
  }
}
