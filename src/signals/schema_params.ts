import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { cursorPageParams } from '../lib/cursor_page.ts'
import { choiceParam, defineParams, idParam, type Param, param, type QueryOf, timeParam } from '../lib/params.ts'
import { metadataPrefix, parseMetadataField, parseStorable } from '../stats/schema.ts'
import { Subject } from './schema.ts'

/** How many metadata fields one request may filter by. */
const maxMetadataFilters = 5

/** The filters that lists and exports share. */
const valueAndRange = {
  value: choiceParam(['positive', 'negative'], 'Only signals of this value.'),
  since: timeParam('Only signals from this ISO 8601 time on.'),
  until: timeParam('Only signals before this ISO 8601 time.'),
}

type Reject = (name: string, message: string) => void

function requireOrder({ since, until }: Record<'since' | 'until', Date | null>, reject: Reject): void {
  if (since && until && since >= until) reject('since', 'must be before until')
}

/** The `metadata.*` filters, sorted by name so that a cursor does not depend on the order in which they are sent. */
function parseMetadataFilters(given: URLSearchParams, reject: Reject): [key: string, text: string][] {
  const names = [...new Set(given.keys())].filter((name) => name.startsWith(metadataPrefix)).sort()
  const excess = names[maxMetadataFilters]
  if (excess !== undefined) reject(excess, `must be one of at most ${maxMetadataFilters} metadata filters`)
  return names.flatMap((name) => {
    const key = parseMetadataField(name)
    const [text, ...others] = given.getAll(name).map(parseStorable)
    if (key === undefined) reject(name, 'must be metadata. and the name of a top-level field')
    if (text === undefined || others.length > 0)
      reject(name, others.length > 0 ? 'must be given only once' : 'must be a string')
    return key === undefined || text === undefined ? [] : [[key, text]]
  })
}

/** Documents the filters on any field, which `parseMetadataFilters` parses together. */
const metadataFilter: Param<null> = {
  schema: Type.String({
    description:
      'Only signals whose metadata has this text, or a list with it, in the top-level field of this name. Any other name ' +
      `works too, up to ${maxMetadataFilters} of them. Write numbers, true, false and null as in JSON.`,
  }),
  parse: () => null,
  expected: 'a string',
  fallback: null,
}

export const signalListParams = defineParams(
  {
    ...cursorPageParams,
    ...valueAndRange,
    change: idParam('Only signals of the change with this id, as its impact counts them.', 'the id of a history entry'),
    'metadata.model': metadataFilter,
  },
  ({ limit, cursor, change, value, since, until }, reject, given) => {
    requireOrder({ since, until }, reject)
    const filter = { value, since, until, metadata: parseMetadataFilters(given, reject) }
    return { filter, change, page: { limit, cursor } }
  },
)

export type SignalListQuery = QueryOf<typeof signalListParams>

export const exportParams = defineParams(
  {
    format: choiceParam(['ndjson', 'csv'], 'One JSON object per line, or CSV with a header row.', 'ndjson'),
    ...valueAndRange,
    after: idParam('Resumes an export that was cut: the id in the last complete line.', 'the id of a signal'),
  },
  (query, reject) => {
    requireOrder(query, reject)
    return query
  },
)

export type ExportQuery = QueryOf<typeof exportParams>

export const isMetadataName = (name: string): boolean => name.startsWith(metadataPrefix)

/** Either a subject, or filters on the metadata with the cursor of the answer before. */
export const eraseParams = defineParams(
  {
    subject: param(Subject, (text) => (Value.Check(Subject, text) ? text : undefined), '1 to 255 printable characters'),
    'metadata.user': metadataFilter,
    cursor: cursorPageParams.cursor,
  },
  ({ subject, cursor }, reject, given) => {
    const metadata = parseMetadataFilters(given, reject)
    for (const [key, text] of metadata) if (text === '') reject(metadataPrefix + key, 'must not be empty')
    const names = [...given.keys()].filter((name) => !isMetadataName(name))
    if (names.length < given.size === given.has('subject')) {
      reject('subject', 'must be given, or else a filter on metadata')
    }
    // A list takes these too, and who ignored one would erase more than the list showed.
    for (const name of names) if (!['subject', 'cursor'].includes(name)) reject(name, 'must be absent')
    return { subject, metadata, cursor }
  },
)
