import { Type } from '@sinclair/typebox'
import { numberedPageParams } from '../lib/numbered_page.ts'
import {
  choiceParam,
  defaultPageSize,
  defineParams,
  idParam,
  type Param,
  param,
  type QueryOf,
  timeParam,
  writeParams,
} from '../lib/params.ts'
import { literals } from '../lib/typebox.ts'
import { maxBranchLength } from '../prompts/schema.ts'
import { type Action, actions } from './schema.ts'

/** Accepts a repeated parameter, which generated clients send, and a list with commas. */
const actionsParam = (possible: Action[]): Param<Action[] | null> => ({
  schema: Type.Array(literals(possible), {
    description: 'Only entries of these actions. Repeat the parameter, or separate the actions with commas.',
  }),
  parse(texts) {
    const given = texts.flatMap((text) => text.split(','))
    if (!given.every((text) => possible.includes(text as Action))) return undefined
    const wanted = possible.filter((action) => given.includes(action))
    return wanted.length === possible.length ? null : wanted
  },
  expected: `one or more of ${possible.join(', ')}`,
  fallback: null,
})

export const entryFilterParams = (possible: Action[]) => ({
  action: actionsParam(possible),
  since: timeParam('Only entries from this ISO 8601 time on.'),
  until: timeParam('Only entries up to this ISO 8601 time, inclusive.'),
  branch: param(
    Type.String({ minLength: 1, maxLength: maxBranchLength, description: 'Only entries of this branch.' }),
    // Postgres cannot store NUL, so no branch has such a name.
    (text) => (text === '' || text.length > maxBranchLength || text.includes('\0') ? undefined : text),
    `the name of a branch, of at most ${maxBranchLength} characters`,
  ),
})

export const historyParams = defineParams({
  ...numberedPageParams,
  ...entryFilterParams(actions),
  include: choiceParam(['title'], 'Adds the title to each entry.'),
})

export const diffParams = defineParams({
  base: idParam(
    'The entry to compare with; the change before it by default.',
    'the id of another history entry of this prompt',
  ),
})

export type HistoryQuery = QueryOf<typeof historyParams>

/** A query with its cache key, which is the same for every spelling of the same query. */
export type KeyedHistoryQuery = HistoryQuery & { key: string }

const noFilters = { action: null, branch: null, since: null, until: null, include: null }

/** Only a page and a limit, in this order: most clients send nothing else, so this skips the general parser. */
const plainQuery = /^(?:\?page=([1-9]\d{0,8})(?:&limit=([1-9]\d?|100))?)?$/

/** Parses the part of a URL from the question mark on. */
export function parseHistoryQuery(search: string): KeyedHistoryQuery {
  const [isPlain, page = 1, limit = defaultPageSize] = plainQuery.exec(search) ?? []
  if (isPlain !== undefined) {
    return { ...noFilters, page: Number(page), limit: Number(limit), key: `page=${page}&limit=${limit}` }
  }
  const query = historyParams.parse(new URLSearchParams(search))
  return { ...query, key: writeHistoryQuery(query, query.page) }
}

/** Returns the URL of another page of the same query; relative when the base is empty. */
export const addressOfPage = (baseUrl: string, prompt: string, query: HistoryQuery, page: number): string =>
  `${baseUrl}/api/v1/prompts/${prompt}/history?${writeHistoryQuery(query, page)}`

const writeHistoryQuery = ({ limit, action, branch, since, until, include }: HistoryQuery, page: number): string =>
  String(writeParams({ page, limit, action, branch, since, until, include }))
