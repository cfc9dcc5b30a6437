import { createHash } from 'node:crypto'
import { type TObject, Type } from '@sinclair/typebox'
import { defaultPageSize, defineParams, invalidQuery, limitParam, param } from './params.ts'
import { isPlain } from './texts.ts'
import { storableOrUndefined } from './times.ts'

/** The last row of a page: by its id; in a list ordered by time, by its time too; in a sorted list, by its sort key. */
type CursorPosition = { id: number; at: Date | null; key?: string }

export type PageRequest = { limit: number; cursor: string | null }
export type CursorPage<Row> = { data: Row[]; limit: number; nextCursor: string | null }

const expectedCursor = 'the next_cursor of an earlier page of this list, with the same filters'

export const cursorPageParams = {
  limit: limitParam,
  cursor: param(
    Type.String({ description: 'The next_cursor of the previous page. Leave it out for the first page.' }),
    (text) => text,
    expectedCursor,
  ),
}

export const cursorParams = defineParams(cursorPageParams)

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

/** Ties a cursor to its list, which is named by its owner and its filters. */
const hashList = (list: string): string => createHash('sha256').update(list).digest('base64url').slice(0, 16)

/** A cursor is opaque but not secret: a forged one only moves within a list that the caller may read anyway. */
export const encodeCursor = (list: string, { id, at, key }: CursorPosition): string =>
  Buffer.from(JSON.stringify([hashList(list), id, at?.getTime() ?? null, key])).toString('base64url')

/** Where the page starts; null at the start of the list. Throws for a cursor of another list or with other filters. */
export function decodeCursor(list: string, cursor: string | null): CursorPosition | null {
  if (cursor === null) return null
  const [hash, id, time, key] = parseCursor(cursor)
  const at = Number.isSafeInteger(time) ? storableOrUndefined(new Date(time as number)) : null
  const isValid =
    hash === hashList(list) && Number.isSafeInteger(id) && at !== undefined && (at === null) === (time === null)
  if (!isValid) throw invalidQuery({ path: 'cursor', message: `must be ${expectedCursor}` })
  return { id: id as number, at, ...(typeof key === 'string' && isPlain(key) && { key }) }
}

function parseCursor(cursor: string): unknown[] {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    return Array.isArray(parsed) ? parsed : []
  } catch {
    return []
  }
}

/** Reads a page of the rows before an id. One more row than the page holds shows whether there is another page. */
export async function readPage<Row>(
  list: string,
  { limit, cursor }: PageRequest,
  read: (beforeId: number, limit: number) => Promise<(Row & { rowId: number })[]>,
): Promise<CursorPage<Row>> {
  const rows = await read(decodeCursor(list, cursor)?.id ?? Number.MAX_SAFE_INTEGER, limit + 1)
  const shown = rows.slice(0, limit)
  const id = shown.at(-1)?.rowId as number
  const nextCursor = rows.length > limit ? encodeCursor(list, { id, at: null }) : null
  return { data: shown.map(({ rowId: _, ...row }) => row as Row), limit, nextCursor }
}
