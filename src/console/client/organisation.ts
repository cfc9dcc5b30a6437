import type { Scope } from '../../lib/scopes.ts'
import { get, type OwnKey } from './api.ts'
import { useQuery } from './query.ts'

export const useOwnKeyQuery = () => useQuery(get('/api/v1/key', {}))

/** Who is signed in, what the key may do, and what the month has used. */
export const useOwnKey = (): OwnKey | undefined => useOwnKeyQuery().data?.data

export const useScopes = (): Scope[] => useOwnKey()?.scopes ?? []

/** The prompts to choose from, or to name in a list: the newest hundred. */
export const usePrompts = () =>
  useQuery(useScopes().includes('prompts:read') ? get('/api/v1/prompts', { query: { limit: 100 } }) : undefined)
