import { invalid } from '../errors.ts'

/** A page of a list that is read by cursor. */
export type PageRequest = { limit: number; cursor: string | null }
export type CursorPage<Row> = { data: Row[]; limit: number; nextCursor: string | null }

export const defaultPageSize = 25
export const maxPageSize = 100

/** Reads `limit` and `cursor`: a limit that is no integer from 1 on means the default, one above the maximum that. */
export function readPageRequest(query: URLSearchParams): PageRequest {
  const limits = query.getAll('limit')
  const isGiven = limits.length === 1 && /^\d+$/.test(limits[0] as string) && Number(limits[0]) >= 1
  const cursors = query.getAll('cursor')
  if (cursors.length > 1) throw badCursor()
  return { limit: isGiven ? Math.min(Number(limits[0]), maxPageSize) : defaultPageSize, cursor: cursors[0] ?? null }
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

/** A cursor is opaque to callers: the id of the last row they have seen. */
export const encodeCursor = (id: number): string => Buffer.from(id.toString(36)).toString('base64url')

export function decodeCursor(cursor: string): number {
  const id = Number.parseInt(Buffer.from(cursor, 'base64url').toString('latin1'), 36)
  if (!Number.isSafeInteger(id) || id < 1 || encodeCursor(id) !== cursor) throw badCursor()
  return id
}

const badCursor = () =>
  invalid('The query is not valid.', [{ path: 'cursor', message: 'must be the next_cursor of an earlier page' }])
