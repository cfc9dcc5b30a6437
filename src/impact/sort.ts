import type { Db } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { type CursorPage, decodeCursor, encodeCursor, type PageRequest } from '../lib/cursor_page.ts'
import { findPrompts, type ListedPrompt } from '../prompts/manage.ts'
import type { PromptFilters, PromptRow } from '../prompts/schema.ts'
import { selectSpanCounts } from '../stats/read.ts'
import { rateOf, totalOf } from './rate.ts'
import { maxSortedPrompts } from './schema.ts'
import type { Sort } from './schema_params.ts'
import { selectLiveChanges } from './store.ts'

/** The signals of `days` count. */
export type SortedList = { organisationId: number; filters: PromptFilters; sort: Sort; days: Date[] }

/** The sort key of a prompt, lowest first. */
type Value = string | number
type Valued = { prompt: ListedPrompt; value: Value }

/** Bounds how long a statement holds the embedded engine's one connection. */
const promptsPerStatement = 100

/** Sorts names like a dictionary, and `step 10` after `step 9`. */
const dictionary = new Intl.Collator('en', { numeric: true })

const compareValues = (a: Value, b: Value): number =>
  typeof a === 'string' ? dictionary.compare(a, String(b)) : a - Number(b)

/** A page of an organisation's prompts, sorted. Prompts with equal values come newest first. */
export async function listSorted(
  db: Db,
  list: SortedList,
  { limit, cursor }: PageRequest,
  limited: <T>(read: () => Promise<T>) => Promise<T>,
  catchUp: (promptIds: number[]) => Promise<void>,
): Promise<CursorPage<PromptRow>> {
  const { organisationId, filters, sort } = list
  const name = JSON.stringify(['prompts', organisationId, filters.search, filters.archived, sort])
  const position = decodeCursor(name, cursor)
  const prompts = await limited(() => findPrompts(db, organisationId, filters, maxSortedPrompts))
  if (!prompts) throw tooMany()
  const valued: Valued[] = []
  for (let start = 0; start < prompts.length; start += promptsPerStatement) {
    const some = prompts.slice(start, start + promptsPerStatement)
    const values = await limited(() => readValues(db, list, some, catchUp))
    valued.push(...some.map((prompt, index) => ({ prompt, value: values[index] as Value })))
  }
  // The cursor holds the value, so a value that changes between two pages moves only its own prompt.
  const compare = (a: Valued, b: Valued) => compareValues(a.value, b.value) || b.prompt.rowId - a.prompt.rowId
  const isAfter = ({ prompt, value }: Valued) =>
    position === null || (compareValues(value, position.value ?? '') || position.id - prompt.rowId) > 0
  const rest = valued.filter(isAfter).toSorted(compare)
  const shown = rest.slice(0, limit)
  const last = shown.at(-1)
  const nextCursor =
    last && rest.length > limit
      ? encodeCursor(name, { id: last.prompt.rowId, at: null, value: String(last.value) })
      : null
  return { data: shown.map(({ prompt: { rowId: _, ...prompt } }) => prompt), limit, nextCursor }
}

/** Prompts without changes or signals come last. */
const afterAll = Number.MAX_VALUE

async function readValues(
  { sql }: Db,
  { sort, days }: SortedList,
  prompts: ListedPrompt[],
  catchUp: (promptIds: number[]) => Promise<void>,
): Promise<Value[]> {
  if (sort === 'name') return prompts.map(({ name }) => name)
  const ids = prompts.map(({ rowId }) => rowId)
  if (sort === 'last_change') {
    const changes = await selectLiveChanges(sql, ids)
    const times = new Map(changes.map(({ prompt_id, created_at }) => [prompt_id, created_at.getTime()]))
    return ids.map((id) => -(times.get(id) ?? -afterAll))
  }
  await catchUp(ids)
  const found = await selectSpanCounts(sql, ids, [days[0] as Date, days.at(-1) as Date])
  const counts = new Map(found.map((span) => [span.promptId, span]))
  return ids.map((id) => {
    const own = counts.get(id) ?? { positive: 0, negative: 0 }
    return sort === 'rate' ? (rateOf(own)?.value ?? afterAll) : -totalOf(own)
  })
}

const tooMany = () =>
  invalid(`There are more than ${maxSortedPrompts} prompts to sort. Search for fewer, or leave sort out.`, [
    { path: 'sort', message: `must be left out where more than ${maxSortedPrompts} prompts are found` },
  ])
