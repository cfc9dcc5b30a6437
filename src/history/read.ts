import type { Db } from '../db/client.ts'
import { notFound, unavailable } from '../errors.ts'
import { createDataLoader } from '../lib/data_loader.ts'
import { linkPages, offsetOf, writeNumberedPage } from '../lib/numbered_page.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import { isPromptId } from '../prompts/find.ts'
import { SharedCache } from './page_cache.ts'
import { addressOfPage, type KeyedHistoryQuery } from './query.ts'
import { actions, type HistoryEntry } from './schema.ts'
import {
  type EntryRow,
  type HistoryState,
  type StateKey,
  selectFilteredPage,
  selectPage,
  selectStates,
} from './store.ts'

/** A finished page: its JSON, and the links to those around it. */
export type RenderedPage = { version: string; body: string; links: string }

export type HistoryReader = {
  /** The history of a prompt as it is now. Rejects with `not_found` unless the prompt is the organisation's own. */
  findHistory(organisationId: number, prompt: string): Promise<HistoryState>
  /** The page that a query selects, as it is now. */
  readPage(history: HistoryState, query: KeyedHistoryQuery): Promise<RenderedPage>
}

export type HistoryObserver = {
  /** Called with the source of each page that is returned. */
  read(source: 'cache' | 'database'): void
  /** Called with the size of the cache whenever it changes. */
  cached(characters: number): void
}

type Options = {
  observer?: HistoryObserver
  /** What the targets of links begin with; empty for relative ones. */
  baseUrl?: string
}

const maxCachedCharacters = 32 * 1024 * 1024
/**
 * How many pages by action or branch are read concurrently, and how many wait. Postgres counts all entries that match, so that
 * with more of them one organisation could take every connection to the database; and without a share, every permit.
 */
const filteredLimits = { permits: 3, permitsPerTenant: 2, maxWaiting: 60, maxWaitingPerTenant: 20, patienceMs: 4_000 }

/**
 * Always fresh, rarely rebuilt: every request reads the version of the history from Postgres, and a page is cached with
 * its version. A page of any other version, older or newer, is not used: after a failover or a restore the history may
 * have lost the changes that a cached page shows.
 */
export function createHistoryReader(db: Db, { observer, baseUrl = '' }: Options = {}): HistoryReader {
  const cache = new SharedCache<number, string, RenderedPage>(
    maxCachedCharacters,
    ({ body, links }, key) => body.length + links.length + key.length,
  )
  const findState = createDataLoader(async (keys: StateKey[]) => {
    const states = await selectStates(
      db.sql,
      keys.map(({ prompt }) => prompt),
    )
    return new Map(states.map((state) => [stateId(state), state]))
  }, stateId)

  const limitFiltered = createSemaphore({ ...filteredLimits, rejectWith: unavailable })

  async function buildPage({ promptId, prompt }: HistoryState, query: KeyedHistoryQuery): Promise<RenderedPage> {
    const selected = await readEntries(db, promptId, query)
    // The prompt is missing only after a failover that lost it between the look-up and now.
    if (!selected) throw notFound()
    const { version, totalCount, entries } = selected
    return {
      version,
      body: writeNumberedPage(query, totalCount, entries.map(showEntry)),
      links: linkPages(query, totalCount, (page) => addressOfPage(baseUrl, prompt, query, page)),
    }
  }

  async function readAnew(key: string, history: HistoryState, query: KeyedHistoryQuery): Promise<RenderedPage> {
    observer?.read('database')
    const build = () => buildPage(history, query)
    const page = await (mustCountMatches(query) ? limitFiltered(build, { tenant: history.organisationId }) : build())
    cache.set(history.organisationId, key, page)
    observer?.cached(cache.size)
    return page
  }

  return {
    async findHistory(organisationId, prompt) {
      const state = isPromptId(prompt) ? await findState({ organisationId, prompt }) : undefined
      if (!state) throw notFound()
      return state
    },
    async readPage(history, query) {
      const key = `${history.prompt}?${query.key}`
      const cached = cache.get(history.organisationId, key)
      if (cached?.version !== history.version) return readAnew(key, history, query)
      observer?.read('cache')
      return cached
    },
  }
}

/** The organisation is part of the key, so that another's prompt is looked up exactly like one that does not exist. */
const stateId = ({ organisationId, prompt }: StateKey): string => `${organisationId} ${prompt}`

/** Whether matching entries are counted one by one: for an action or a branch, but not for a range of time, which is one of ranks. */
const mustCountMatches = ({ action, branch }: KeyedHistoryQuery): boolean => action !== null || branch !== null

function readEntries({ sql }: Db, promptId: number, query: KeyedHistoryQuery) {
  const page = {
    offset: offsetOf(query),
    size: query.limit,
    since: query.since?.toISOString() ?? '-infinity',
    until: query.until?.toISOString() ?? 'infinity',
  }
  return mustCountMatches(query)
    ? selectFilteredPage(sql, promptId, page, query.action ?? actions, query.branch)
    : selectPage(sql, promptId, page)
}

export const showEntry = (row: EntryRow): HistoryEntry => ({
  id: row.id,
  action: row.action,
  user: { name: row.user_name, email: row.user_email },
  commit_sha: row.commit_sha,
  pr_number: row.pr_number,
  pr_url: row.pr_url,
  branch_name: row.branch_name,
  created_at: row.created_at.toISOString(),
})
