import type { Db, Sql } from '../db/client.ts'
import { type Detail, notFound, ServiceError } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createDataLoader } from '../lib/concurrency.ts'
import { type PageRequest, readPage } from '../lib/cursor_page.ts'
import { type PromptFilters, PromptId, type PromptRow } from './schema.ts'
import {
  findPromptsByIds,
  type OwnedPrompt,
  type Prompt,
  type PromptFile,
  selectErasedFiles,
  selectPromptIds,
  selectPromptRows,
  selectPrompts,
} from './store.ts'

export { findPromptsNamed } from './store.ts'
export type { OwnedPrompt, Prompt, PromptFile }

const maxCachedPrompts = 100_000
/** A prompt that was erased is unknown within a second on every replica. */
const trustedForMs = 1_000
/** From then on a request looks the prompt up again, but does not wait for it. */
const refreshedAfterMs = 500
/** A statement counts the signals of this many prompts. More would occupy the embedded engine for too long. */
const promptsPerRead = 100

const promptId = new RegExp(PromptId.pattern as string)

export const isPromptId = (text: string): boolean => promptId.test(text)

export function createPromptFinder(db: Db) {
  // The key includes the organisation, so that another's prompt takes the same path, and the same time, as one that does
  // not exist.
  let cache = new BoundedCache<string, { prompt: Prompt; readAt: number; isRefreshing: boolean }>(maxCachedPrompts)

  // Concurrent look-ups share one statement: a batch of history entries needs hundreds.
  const load = createDataLoader(async (keys) => {
    const publicIds = keys.map((key) => key.slice(key.indexOf(' ') + 1))
    // Rows are matched by their own values, never by their order.
    return new Map(
      (await findPromptsByIds(db.sql, publicIds)).map(({ id, organisationId, publicId }) => {
        return [keyOf(organisationId, publicId), { id, organisationId, publicId }]
      }),
    )
  })

  async function lookUp(key: string, publicId: string): Promise<Prompt> {
    // A prompt read before the cache was emptied is not cached after it.
    const [cacheOfNow, readAt] = [cache, performance.now()]
    const prompt = isPromptId(publicId) ? await load(key) : undefined
    if (!prompt) throw notFound()
    cacheOfNow.set(key, { prompt, readAt, isRefreshing: false })
    return prompt
  }

  return {
    /**
     * Rejects with `not_found` unless the prompt is the organisation's own. A cached one is returned without a promise: a
     * refused signal then needs no extra turn of the event loop.
     */
    find(organisationId: number, publicId: string): Prompt | Promise<Prompt> {
      const key = keyOf(organisationId, publicId)
      const known = cache.get(key)
      const age = performance.now() - (known?.readAt ?? Number.NEGATIVE_INFINITY)
      if (!known || age >= trustedForMs) return lookUp(key, publicId)
      if (age >= refreshedAfterMs && !known.isRefreshing) {
        known.isRefreshing = true
        lookUp(key, publicId).catch(() => {})
      }
      return known.prompt
    },
    forget: ({ organisationId, publicId }: Prompt): void => cache.delete(keyOf(organisationId, publicId)),
    /** After a failover another prompt may have the same id. Nothing read before is cached. */
    forgetAll(): void {
      cache = new BoundedCache(maxCachedPrompts)
    },
  }
}

const keyOf = (organisationId: number, publicId: string): string => `${organisationId} ${publicId}`

/** Finds the organisation's prompts with these public ids. Returns their row ids. */
export async function findOwnPrompts(sql: Sql, organisationId: number, texts: string[]): Promise<Map<string, number>> {
  const publicIds = texts.filter(isPromptId)
  const found = publicIds.length > 0 ? await findPromptsByIds(sql, publicIds) : []
  const own = found.filter((prompt) => prompt.organisationId === organisationId)
  return new Map(own.map(({ publicId, id }) => [publicId, id]))
}

/** Names each place in a list of prompts that has none of the organisation. */
export async function findForeignPrompts(sql: Sql, organisationId: number, prompts: string[]): Promise<Detail[]> {
  const own = await findOwnPrompts(sql, organisationId, prompts)
  return prompts.flatMap((prompt, index) =>
    own.has(prompt) ? [] : { path: `/prompts/${index}`, message: 'must be a prompt of the organisation' },
  )
}

/** Reads the prompts of an organisation after this id in batches, because there may be any number of them. */
export async function* readPrompts(db: Db, organisationId: number, afterId = 0): AsyncGenerator<Prompt[]> {
  for (let lastId = afterId; ; ) {
    const prompts = await selectPromptIds(db.sql, organisationId, lastId, promptsPerRead)
    if (prompts.length > 0) yield prompts
    if (prompts.length < promptsPerRead) return
    lastId = (prompts.at(-1) as Prompt).id
  }
}

/** Finds a prompt for an operator, who may name one of any organisation. */
export async function requirePrompt(sql: Sql, publicId: string): Promise<Prompt & { org: string }> {
  const [prompt] = isPromptId(publicId) ? await findPromptsByIds(sql, [publicId]) : []
  if (!prompt) throw new ServiceError('not_found', `There is no prompt ${publicId}.`)
  return prompt
}

/** Lists the prompts of an organisation that match the filters, newest first. */
export const listPrompts = (
  db: Db,
  organisationId: number,
  request: PageRequest,
  filters: PromptFilters,
  list = 'prompts',
) =>
  readPage<PromptRow>(
    JSON.stringify([list, organisationId, filters.search, filters.archived]),
    request,
    (beforeId, limit) => selectPrompts(db.sql, organisationId, filters, beforeId, limit),
  )

export const listErasedFiles = (db: Db, organisationId: number, request: PageRequest) =>
  readPage<PromptFile>(`erased files ${organisationId}`, request, (beforeId, limit) =>
    selectErasedFiles(db.sql, organisationId, beforeId, limit),
  )

/** The prompts of an organisation that have these row ids, in their order. */
export async function listPromptsOf(sql: Sql, organisationId: number, ids: number[]): Promise<PromptRow[]> {
  const rows = new Map((await selectPromptRows(sql, organisationId, ids)).map(({ rowId, ...row }) => [rowId, row]))
  return ids.flatMap((id) => rows.get(id) ?? [])
}

export async function showPrompt(db: Db, { id, organisationId }: Prompt): Promise<PromptRow> {
  const [row] = await listPromptsOf(db.sql, organisationId, [id])
  // The prompt is missing only after a failover that lost it.
  if (!row) throw notFound()
  return row
}
