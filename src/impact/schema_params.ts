import { Type } from '@sinclair/typebox'
import type { Action } from '../history/schema.ts'
import { entryFilterParams, writeEntryFilters } from '../history/schema_params.ts'
import { cursorPageParams } from '../lib/cursor_page.ts'
import { numberedPageParams } from '../lib/numbered_page.ts'
import {
  choiceParam,
  defineParams,
  idParam,
  limitParam,
  pageParam,
  param,
  type QueryOf,
  timeParam,
} from '../lib/params.ts'
import { promptFilterParams } from '../prompts/schema.ts'

export const defaultMargin = 0.05

const marginParam = param(
  Type.Unsafe<number>({
    type: 'number',
    minimum: 0,
    maximum: 1,
    exclusiveMaximum: true,
    description: 'The smallest difference that matters. A difference that certainly lies within it counts as the same.',
  }),
  // At most six digits after the point, like the rates that it is compared with.
  (text) => (/^(0|0?\.\d{1,6})$/.test(text) ? Number(text) : undefined),
  'a number from 0 to less than 1, such as 0.05',
  defaultMargin,
)

const entryParam = (which: string) =>
  idParam(`Id of the history entry of the ${which} change.`, 'the id of a history entry')

/** The actions of entries that can be changes. */
const liveActions: Action[] = ['deployed', 'pr_merged']

export const impactParams = defineParams(
  {
    ...numberedPageParams,
    ...entryFilterParams(liveActions),
    margin: marginParam,
    base: entryParam('earlier'),
    head: entryParam('later'),
  },
  ({ base, head, ...query }, reject, given) => {
    if (head !== null && !given.has('base')) reject('base', 'must be given with head')
    if (base !== null && !given.has('head')) reject('head', 'must be given with base')
    if (base !== null && base === head) reject('head', 'must be another change than base')
    if (base === null || head === null) return { ...query, pair: null }
    for (const name of Object.keys(writeEntryFilters(query))) reject(name, 'must not be given with base and head')
    return { ...query, page: pageParam.fallback, limit: limitParam.fallback, pair: { base, head } }
  },
)

export type ImpactQuery = QueryOf<typeof impactParams>

export type Pair = NonNullable<ImpactQuery['pair']>

export const daysParams = defineParams({ margin: marginParam })

/** As many characters of a hash as git shows at least. */
export const shortestHash = 7

const commitParam = (which: string) =>
  param(
    Type.String({
      minLength: shortestHash,
      maxLength: 100,
      description: `Commit of the ${which}: a hash, or a beginning of it that no other commit of the prompt has.`,
    }),
    (text) => (/^[\x21-\x7e]{7,100}$/.test(text) ? text.toLowerCase() : undefined),
    'the hash of a commit, or at least its first 7 characters',
  )

export const compareParams = defineParams(
  {
    base: commitParam('version that is compared with'),
    head: commitParam('version that is compared'),
    since: timeParam('Only signals from this ISO 8601 time on.'),
    until: timeParam('Only signals before this ISO 8601 time.'),
    margin: marginParam,
  },
  (query, reject, given) => {
    for (const name of ['base', 'head']) if (!given.has(name)) reject(name, 'must be given')
    if (query.since && query.until && query.since >= query.until) reject('since', 'must be before until')
    return { ...query, base: query.base ?? '', head: query.head ?? '' }
  },
)

export type CompareQuery = QueryOf<typeof compareParams>

const sorts = ['last_change', 'name', 'rate', 'signals'] as const

export type Sort = (typeof sorts)[number]

export const overviewParams = defineParams({
  ...cursorPageParams,
  margin: marginParam,
  ...promptFilterParams,
  sort: choiceParam(
    sorts,
    'last_change: most recently changed first; name: alphabetical; rate: lowest rate of the last 30 days first; ' +
      'signals: most signals in the last 30 days first. Without it, newest prompts first.',
  ),
})

export type OverviewQuery = QueryOf<typeof overviewParams>
