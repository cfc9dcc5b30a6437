import type { Db } from '../db/client.ts'
import { notFound, unavailable } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { createGroupLookup } from '../lib/group_lookup.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import { isPromptId } from '../prompts/find.ts'
import { type HistoryQuery, pagingLinks, readQuery } from './query.ts'
import { actions, type HistoryEntry } from './schema.ts'
import { type EntryRow, type HistoryState, selectFilteredPage, selectPage, selectStates } from './store.ts'

/** A finished page: its JSON, and the links to those around it. */
export type HistoryPage = { version: number; body: string; links: string }

export type HistoryReader = {
  /** The version of a history as it is now; two equal versions mean equal pages. */
  findVersion(organisationId: number, prompt: string): Promise<number>
  /** The page that a query asks for, at least as new as the version; at once when it is known. */
  readPage(prompt: string, version: number, query: string): HistoryPage | Promise<HistoryPage>
}

export type HistoryObserver = {
  /** A page was answered as it was kept, or was read anew. */
  read(source: 'cache' | 'database'): void
  /** So much is kept now. */
  cached(characters: number): void
}

const maxCachedCharacters = 32 * 1024 * 1024
/**
 * How many pages with filters are read at once, and wait for it. They count all that matches, so that with more of them
 * one organisation could have all connections to the database.
 */
const [maxFiltered, maxWaitingFiltered] = [2, 20]
/** Far beyond any last page, and still within what Postgres multiplies by a page size. */
const lastConceivablePage = 10 ** 15

/** Always fresh, rarely rebuilt: every request asks Postgres for the version, and a page is kept with its version. */
export function createHistoryReader(db: Db, observe?: HistoryObserver): HistoryReader {
  const cache = new BoundedCache<string, HistoryPage>(
    maxCachedCharacters,
    ({ body, links }, question) => body.length + links.length + question.length,
  )
  const findState = createGroupLookup<HistoryState>(async (prompts) => {
    const states = await selectStates(db.sql, prompts)
    return new Map(states.map((state) => [state.prompt, state]))
  })

  const inTurn = createSemaphore({ permits: maxFiltered, maxWaiting: maxWaitingFiltered, refuse: unavailable })

  return {
    async findVersion(organisationId, prompt) {
      const state = isPromptId(prompt) ? await findState(prompt) : undefined
      if (state?.organisationId !== organisationId) throw notFound()
      return state.version
    },
    readPage(prompt, version, query) {
      const question = prompt + query
      const known = cache.get(question)
      if (known && known.version >= version) {
        observe?.read('cache')
        return known
      }
      observe?.read('database')
      const read = readQuery(new URLSearchParams(query))
      const build = () => buildPage(db, prompt, read)
      return (isFiltered(read) ? inTurn(build) : build()).then((page) => {
        cache.set(question, page)
        observe?.cached(cache.size)
        return page
      })
    },
  }
}

const isFiltered = ({ actions, branch }: HistoryQuery): boolean => actions !== null || branch !== null

async function buildPage(db: Db, prompt: string, query: HistoryQuery): Promise<HistoryPage> {
  const { page, limit, branch } = query
  const toSelect = {
    number: Math.min(Number(page), lastConceivablePage),
    size: limit,
    since: query.since?.toISOString() ?? '-infinity',
    until: query.until?.toISOString() ?? 'infinity',
  }
  const { version, totalCount, entries } = isFiltered(query)
    ? await selectFilteredPage(db.sql, prompt, toSelect, query.actions ?? actions, branch)
    : await selectPage(db.sql, prompt, toSelect)
  const totalPages = Math.ceil(totalCount / limit)
  // By hand for the sake of current_page, which may be larger than a JavaScript number keeps exactly.
  const pagination = `{"current_page":${page},"total_pages":${totalPages},"total_count":${totalCount},"per_page":${limit}}`
  const body = `{"data":${JSON.stringify(entries.map(showEntry))},"pagination":${pagination}}`
  return { version, body, links: pagingLinks(prompt, query, totalPages) }
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
