import { answerOf, api } from './api.ts'
import { type Query, useQuery } from './query.ts'
import type { OwnKey, Scope } from './schemas.ts'

/** Who is signed in, what the key may do, and what the month has used. */
export const useOwnKey = (): Query<{ data: OwnKey }> => useQuery('key', () => answerOf(api.GET('/api/v1/key')))

export function useScopes(): Scope[] {
  return useOwnKey().data?.data.scopes ?? []
}
