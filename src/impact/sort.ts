import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { BoundedCache } from '../lib/bounded_cache.ts'
import { totalOf } from '../lib/counts.ts'
import { type CursorPage, decodeCursor, encodeCursor, type PageRequest } from '../lib/cursor_page.ts'
import { sortInSlices } from '../lib/sliced_sort.ts'
import { findPromptNames, listPromptsOf } from '../prompts/find.ts'
import type { PromptFilters, PromptRow } from '../prompts/schema.ts'
import { selectDayCounts } from '../stats/read.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { rateOf } from './rate.ts'
import { maxSortedPrompts, type Sort } from './schema_overview.ts'
import { selectNewestChanges } from './store.ts'

/** Signals count from one midnight (UTC) until another. */
type SortedList = { organisationId: number; filters: PromptFilters; sort: Sort; from: Date; until: Date }

/** The sort key of a prompt, lowest first. */
type Value = string | number
type Valued = { id: number; value: Value }

/** Sorted prompts, and when sorting began: by the clock (`at`), and by `performance.now()`. */
type Order = { prompts: Valued[]; at: Date; startedAt: number }

type Services = { db: Db; clock: Clock; rollup: SignalRollup }

/** Bounds how long a statement holds the embedded engine's one connection. */
const promptsPerStatement = 500
/** The order of more prompts than this is cached. */
const maxFreshPrompts = 1_000
const keptForMs = 5_000
/** Some tens of megabytes: a name has at most 200 characters. */
const maxKeptPrompts = 8 * maxSortedPrompts

/** Sorts names like a dictionary, and `step 10` after `step 9`. */
const dictionary = new Intl.Collator('en', { numeric: true })

const compareValues = (a: Value, b: Value): number =>
  typeof a === 'string' ? dictionary.compare(a, String(b)) : a - Number(b)

/** Prompts with equal values come newest first. */
const compare = (a: Valued, b: Valued): number => compareValues(a.value, b.value) || b.id - a.id

/** Sorts the prompts of organisations. Concurrent callers for the same list share one computation. */
export function createSortedLists({ db, clock, rollup }: Services) {
  const inFlight = new Map<string, Promise<Order>>()
  const kept = new BoundedCache<string, Order>(maxKeptPrompts, ({ prompts }) => prompts.length)

  async function sortPrompts(list: SortedList): Promise<Order> {
    const { organisationId, filters } = list
    const started = { at: clock.now(), startedAt: performance.now() }
    const limited = <T>(read: () => Promise<T>) => db.heavyRead(organisationId, read)
    const found = await limited(() => findPromptNames(db.sql, organisationId, filters, maxSortedPrompts))
    if (!found) throw tooMany()
    const prompts: Valued[] = []
    const readSome = async (start: number) => {
      const some = found.slice(start, start + promptsPerStatement)
      const values = await limited(() => readValues(db.sql, rollup, list, some))
      return some.map(({ id }, index) => ({ id, value: values[index] as Value }))
    }
    // Two at a time: an organisation gets no more permits for heavy reads.
    for (let start = 0; start < found.length; start += 2 * promptsPerStatement) {
      prompts.push(...(await Promise.all([readSome(start), readSome(start + promptsPerStatement)])).flat())
    }
    return { prompts: await sortInSlices(prompts, compare), ...started }
  }

  async function findOrder(list: SortedList): Promise<Order> {
    const key = JSON.stringify(list)
    const known = kept.get(key)
    if (known && performance.now() - known.startedAt < keptForMs) return known
    const running = inFlight.get(key) ?? sortPrompts(list).finally(() => inFlight.delete(key))
    inFlight.set(key, running)
    const order = await running
    if (order.prompts.length > maxFreshPrompts) kept.set(key, order)
    return order
  }

  /** A page of an organisation's prompts, sorted. */
  return async (list: SortedList, request: PageRequest): Promise<CursorPage<PromptRow> & { sortedAt: Date }> => {
    const { limit, cursor } = request
    const name = JSON.stringify(['sorted impact', list.organisationId, list.filters, list.sort])
    const position = decodeCursor(name, cursor)
    const { prompts, at } = await findOrder(list)
    // The cursor holds the value, so a value that changes between two pages moves only its own prompt.
    const last = position && { id: position.id, value: position.value ?? '' }
    const start = last ? prompts.findIndex((prompt) => compare(prompt, last) > 0) : 0
    const shown = start < 0 ? [] : prompts.slice(start, start + limit)
    const end = shown.at(-1)
    const hasMore = start + limit < prompts.length
    const nextCursor = end && hasMore ? encodeCursor(name, { id: end.id, at: null, value: String(end.value) }) : null
    const data = await listPromptsOf(
      db.sql,
      list.organisationId,
      shown.map(({ id }) => id),
    )
    return { data, limit, nextCursor, sortedAt: at }
  }
}

/** Prompts without changes or signals come last. */
const afterAll = Number.MAX_VALUE

async function readValues(
  sql: Sql,
  rollup: SignalRollup,
  { organisationId, sort, from, until }: SortedList,
  prompts: { id: number; name: string }[],
): Promise<Value[]> {
  if (sort === 'name') return prompts.map(({ name }) => name)
  const ids = prompts.map(({ id }) => id)
  if (sort === 'last_change') {
    const changes = await selectNewestChanges(sql, organisationId, ids)
    const times = new Map(changes.map(({ prompt_id, created_at }) => [prompt_id, created_at.getTime()]))
    return ids.map((id) => -(times.get(id) ?? -afterAll))
  }
  await rollup.catchUpEach(organisationId, ids, performance.now())
  const found = await selectDayCounts(sql, organisationId, ids, from, until)
  const counts = new Map(found.map((count) => [count.promptId, count]))
  return ids.map((id) => {
    const own = counts.get(id) ?? { positive: 0, negative: 0 }
    return sort === 'rate' ? (rateOf(own)?.value ?? afterAll) : -totalOf(own)
  })
}

const tooMany = () =>
  invalid(`There are more than ${maxSortedPrompts} prompts to sort. Search for fewer, or leave sort out.`, [
    { path: 'sort', message: `must be left out where more than ${maxSortedPrompts} prompts are found` },
  ])
