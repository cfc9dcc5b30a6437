import { answerOf, api } from './api.ts'
import { type Query, useQuery } from './query.ts'
import type { Schemas } from './schemas.ts'

/** The prompts to choose from, or to name in a list: the newest hundred. */
export const usePrompts = (): Query<Schemas['PromptList']> =>
  useQuery('prompts 100', () => answerOf(api.GET('/api/v1/prompts', { params: { query: { limit: 100 } } })))
