import type { Db, Sql } from '../db/client.ts'
import { notFound, ServiceError } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { PromptId } from './schema.ts'
import { findPromptOf, findPromptOfAny, type Prompt } from './store.ts'

export type { Prompt }

/** Rejects with `not_found` unless the prompt is the organisation's own. */
export type PromptFinder = (organisationId: number, publicId: string) => Promise<Prompt>

const maxCachedPrompts = 100_000

const promptId = new RegExp(PromptId.pattern as string)

export const isPromptId = (text: string): boolean => promptId.test(text)

export function createPromptFinder(db: Db): PromptFinder {
  // By organisation and prompt, so that another's prompt takes the same path, and the same time, as one that does not
  // exist. An entry never goes stale: a prompt keeps its id and its organisation, and is not deleted.
  const cache = new BoundedCache<string, Prompt>(maxCachedPrompts)

  return async (organisationId, publicId) => {
    const key = `${organisationId} ${publicId}`
    const cached = cache.get(key)
    if (cached) return cached
    const prompt = isPromptId(publicId) ? await findPromptOf(db.sql, organisationId, publicId) : undefined
    if (!prompt) throw notFound()
    cache.set(key, prompt)
    return prompt
  }
}

/** Whether it is a prompt of the organisation, for rules that look at it once. */
export const belongsTo = async (sql: Sql, organisationId: number, publicId: string): Promise<boolean> =>
  isPromptId(publicId) && (await findPromptOf(sql, organisationId, publicId)) !== undefined

/** For operators, who see the prompts of every organisation. */
export async function requirePrompt(sql: Sql, publicId: string): Promise<Prompt> {
  const prompt = isPromptId(publicId) ? await findPromptOfAny(sql, publicId) : undefined
  if (!prompt) throw new ServiceError('not_found', `There is no prompt ${publicId}.`)
  return prompt
}
