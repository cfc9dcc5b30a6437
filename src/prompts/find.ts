import type { Db, Sql } from '../db/client.ts'
import { notFound, ServiceError } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { PromptId } from './schema.ts'
import { findPrompt } from './store.ts'

export type Prompt = { id: number; organisationId: number }

/** Throws or rejects with `not_found`; a prompt that is known is there at once. */
export type PromptFinder = (organisationId: number, publicId: string) => Prompt | Promise<Prompt>

const maxCachedPrompts = 100_000

const promptId = new RegExp(PromptId.pattern as string)

export const isPromptId = (text: string): boolean => promptId.test(text)

export function createPromptFinder(db: Db): PromptFinder {
  // Never goes stale: a prompt keeps its id and its organisation, and is not deleted.
  const cache = new BoundedCache<string, Prompt>(maxCachedPrompts)

  async function lookUp(organisationId: number, publicId: string): Promise<Prompt> {
    const prompt = isPromptId(publicId) ? await findPrompt(db.sql, publicId) : undefined
    if (prompt) cache.set(publicId, prompt)
    return requireOwn(prompt, organisationId)
  }

  return (organisationId, publicId) => {
    const known = cache.get(publicId)
    return known ? requireOwn(known, organisationId) : lookUp(organisationId, publicId)
  }
}

function requireOwn(prompt: Prompt | undefined, organisationId: number): Prompt {
  if (prompt?.organisationId !== organisationId) throw notFound()
  return prompt
}

/** For operators, who see the prompts of every organisation. */
export async function requirePrompt(sql: Sql, publicId: string): Promise<Prompt> {
  const prompt = isPromptId(publicId) ? await findPrompt(sql, publicId) : undefined
  if (!prompt) throw new ServiceError('not_found', `There is no prompt ${publicId}.`)
  return prompt
}
