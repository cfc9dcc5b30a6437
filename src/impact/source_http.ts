import { dataOf, type Rest } from '../lib/rest.ts'
import type { Impact } from './schema.ts'
import type { ImpactSource, PromptName } from './source.ts'

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
