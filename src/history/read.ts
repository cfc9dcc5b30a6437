import type { Db } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createDataLoader } from '../lib/concurrency.ts'
import { linkPages, offsetOf, writeNumberedPage } from '../lib/numbered_page.ts'
import { isPromptId } from '../prompts/find.ts'
import { actions, showEntry, showTitledEntry } from './schema.ts'
import { addressOfPage, type HistoryQuery, type KeyedHistoryQuery } from './schema_params.ts'
import { type HistoryState, type StateKey, selectFilteredPage, selectPage, selectStates } from './store.ts'

export { findEntry } from './store.ts'

/** A page as JSON, with the `Link` header for the pages around it. */
type RenderedPage = { version: string; body: string; links: string }

export type HistoryReader = ReturnType<typeof createHistoryReader>

export type HistoryObserver = {
  /** Called with the source of each page that is returned. */
  read(source: 'cache' | 'database'): void
  /** Called with the size of the cache whenever it changes. */
  cached(characters: number): void
}

/** Links begin with the base URL; without it they are relative. */
type Options = { observer?: HistoryObserver; baseUrl?: string }

const maxCachedCharacters = 32 * 1024 * 1024

/**
 * Pages are never stale: every request reads the version of the history from Postgres, and only a cached page of exactly
 * this version is used. A newer one is not: after a failover or a restore the history may have lost changes.
 */
export function createHistoryReader(db: Db, { observer, baseUrl = '' }: Options = {}) {
  const cache = new SharedCache<number, string, RenderedPage>(
    maxCachedCharacters,
    ({ body, links }, key) => body.length + links.length + key.length,
  )
  const findState = createDataLoader(async (keys: StateKey[]) => {
    const prompts = keys.map(({ prompt }) => prompt)
    const states = await selectStates(db.sql, prompts)
    return new Map(states.map((state) => [stateId(state), state]))
  }, stateId)

  async function buildPage(history: HistoryState, query: KeyedHistoryQuery): Promise<RenderedPage> {
    const page = {
      offset: offsetOf(query),
      size: query.limit,
      since: query.since?.toISOString() ?? '-infinity',
      until: query.until?.toISOString() ?? 'infinity',
    }
    const selected = mustCountMatches(query)
      ? await selectFilteredPage(db.sql, history, page, query.action ?? actions, query.branch)
      : await selectPage(db.sql, history, page)
    // The prompt is missing only after a failover that lost it since the look-up.
    if (!selected) throw notFound()
    const { version, totalCount, entries } = selected
    return {
      version,
      body: writeNumberedPage(query, totalCount, entries.map(query.include ? showTitledEntry : showEntry)),
      links: linkPages(query, totalCount, (page) => addressOfPage(baseUrl, history.prompt, query, page)),
    }
  }

  async function readFromDatabase(key: string, history: HistoryState, query: KeyedHistoryQuery): Promise<RenderedPage> {
    observer?.read('database')
    const build = () => buildPage(history, query)
    const page = await (mustCountMatches(query) ? db.heavyRead(history.organisationId, build) : build())
    cache.set(history.organisationId, key, page)
    observer?.cached(cache.size)
    return page
  }

  return {
    /** Reads the current version. Rejects with `not_found` for a prompt of another organisation. */
    async findHistory(organisationId: number, prompt: string): Promise<HistoryState> {
      const state = isPromptId(prompt) ? await findState({ organisationId, prompt }) : undefined
      if (!state) throw notFound()
      return state
    },
    /** Returns the current page, from the cache if its version is current. */
    async readPage(history: HistoryState, query: KeyedHistoryQuery): Promise<RenderedPage> {
      const key = `${history.prompt}?${query.key}`
      const cached = cache.get(history.organisationId, key)
      if (cached?.version !== history.version) return readFromDatabase(key, history, query)
      observer?.read('cache')
      return cached
    },
  }
}

/** The organisation is part of the key, so that a prompt of another one is answered exactly like one that does not exist. */
const stateId = ({ organisationId, prompt }: StateKey): string => `${organisationId} ${prompt}`

/** Whether the total has to be counted: ranks give it for ranges of time, but not for an action or a branch. */
const mustCountMatches = ({ action, branch }: HistoryQuery): boolean => action !== null || branch !== null

/**
 * An LRU cache that owners share. One owner may fill it while no other needs it. Once it is full, only owners above an
 * equal share lose entries, so that a busy owner never evicts what another holds within its share.
 */
export class SharedCache<Owner, Key, Value> {
  readonly #owned = new Map<Owner, BoundedCache<Key, Value>>()
  #size = 0

  constructor(
    readonly maxSize: number,
    private readonly sizeOf: (value: Value, key: Key) => number,
  ) {}

  get size(): number {
    return this.#size
  }

  get(owner: Owner, key: Key): Value | undefined {
    return this.#owned.get(owner)?.get(key, this.#size > this.maxSize / 2)
  }

  set(owner: Owner, key: Key, value: Value): void {
    const own = this.#owned.get(owner) ?? new BoundedCache<Key, Value>(Number.POSITIVE_INFINITY, this.sizeOf)
    this.#owned.set(owner, own)
    this.#resize(own, () => own.set(key, value))
    if (this.#size > this.maxSize) this.#evict()
  }

  #evict(): void {
    // Evicting several pages together keeps scans of all owners rare.
    const room = this.maxSize * (15 / 16)
    const share = room / this.#owned.size
    for (const [owner, own] of this.#owned) {
      while (this.#size > room && own.size > share) this.#resize(own, () => own.evictOldest())
      if (own.size === 0) this.#owned.delete(owner)
    }
  }

  #resize(own: BoundedCache<Key, Value>, change: () => void): void {
    this.#size -= own.size
    change()
    this.#size += own.size
  }
}
