import { type TObject, Type } from '@sinclair/typebox'
import { invalid } from '../errors.ts'
import type { CursorPosition } from './cursor_cipher.ts'

/** Cursors are opaque to callers, and each is good for one list alone, which is named by whose it is and its filters. */
export type Cursors = {
  encrypt(list: string, position: CursorPosition): Promise<string>
  /** Where the page begins; null at the beginning of the list. Rejects a cursor that is forged, or of another list. */
  decrypt(list: string, cursor: string | null): Promise<CursorPosition | null>
}

/** A page of a list that is read by cursor, newest first. */
export type PageRequest = { limit: number; cursor: string | null }
export type CursorPage<Row> = { data: Row[]; limit: number; nextCursor: string | null }

export const defaultPageSize = 25
export const maxPageSize = 100

/** This schema is for the documentation alone. */
export const PageQuery = Type.Object({
  limit: Type.Integer({
    minimum: 1,
    maximum: maxPageSize,
    default: defaultPageSize,
    description: 'Results per page. More than the maximum is served as the maximum, anything else as the default.',
  }),
  cursor: Type.String({ description: 'The next_cursor of the page before. Left out, the list begins.' }),
})

export const cursorPageOf = (item: TObject, example: object) =>
  Type.Object(
    {
      data: Type.Array(item),
      pagination: Type.Object(
        {
          per_page: Type.Integer({ description: 'Page size used' }),
          next_cursor: Type.Union([Type.String(), Type.Null()], { description: 'Null on the last page' }),
        },
        { title: 'CursorPagination' },
      ),
    },
    {
      title: `${item.title}List`,
      examples: [{ data: [example], pagination: { per_page: defaultPageSize, next_cursor: null } }],
    },
  )

export function parsePageRequest(query: URLSearchParams): PageRequest {
  const [cursor = null, ...others] = query.getAll('cursor')
  if (others.length > 0) throw badCursor()
  return { limit: parsePageSize(query), cursor }
}

/** Parses `limit`: above the maximum it means that, and what is no positive integer means the default. */
export function parsePageSize(query: URLSearchParams): number {
  const size = parsePositive(query.getAll('limit')) ?? BigInt(defaultPageSize)
  return size > maxPageSize ? maxPageSize : Number(size)
}

/** A positive integer of any size; undefined for anything else, also for a parameter that is given twice. */
export function parsePositive([text = '', ...others]: string[]): bigint | undefined {
  return others.length === 0 && /^0*[1-9]\d*$/.test(text) ? BigInt(text) : undefined
}

/** Reads a page of the rows before an id. One more row than the page holds shows whether there is another page. */
export async function toPage<Row>(
  cursors: Cursors,
  list: string,
  { limit, cursor }: PageRequest,
  read: (beforeId: number, limit: number) => Promise<(Row & { rowId: number })[]>,
): Promise<CursorPage<Row>> {
  const position = await cursors.decrypt(list, cursor)
  const rows = await read(position?.id ?? Number.MAX_SAFE_INTEGER, limit + 1)
  const shown = rows.slice(0, limit)
  const id = shown.at(-1)?.rowId as number
  const nextCursor = rows.length > limit ? await cursors.encrypt(list, { id, at: null }) : null
  return { data: shown.map(({ rowId: _, ...row }) => row as Row), limit, nextCursor }
}

/** Every row of a list, read page by page. */
export async function readAllPages<Row>(read: (request: PageRequest) => Promise<CursorPage<Row>>): Promise<Row[]> {
  const rows: Row[] = []
  for (let cursor: string | null = null; ; ) {
    const page: CursorPage<Row> = await read({ limit: maxPageSize, cursor })
    rows.push(...page.data)
    if (page.nextCursor === null) return rows
    cursor = page.nextCursor
  }
}

export const badCursor = () =>
  invalid('The query is not valid.', [{ path: 'cursor', message: 'must be the next_cursor of an earlier page' }])
