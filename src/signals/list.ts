import type { Db } from '../db/client.ts'
import { type CursorPage, decodeCursor, encodeCursor } from '../lib/cursor_page.ts'
import type { SignalListQuery } from './schema_params.ts'
import { type Position, type SignalFilter, type SignalRow, selectSignals } from './store_list.ts'

export type { SignalRow }

/** How many signals one request looks at for those that its filters select. */
const maxLookedAt = 5_000
/** One statement looks at this many: with metadata of 16 KiB each, some tens of milliseconds of the embedded engine. */
const lookedAtPerStatement = 1_000

/** Whether matching signals have to be searched for: a range of time alone is found by the index. */
export const isSearch = ({ value, metadata }: SignalFilter): boolean => value !== null || metadata.length > 0

/** A page of signals, newest first. It may be empty and not the last: filters make a request stop after a while. */
export async function listSignals(
  db: Db,
  promptId: number,
  { filter, page: { limit, cursor } }: SignalListQuery,
): Promise<CursorPage<SignalRow>> {
  const list = nameOfList(promptId, filter)
  const rows: SignalRow[] = []
  let stoppedAt = decodeCursor(list, cursor) as Position | null
  for (let lookedAt = 0; lookedAt < maxLookedAt; lookedAt += lookedAtPerStatement) {
    const missing = limit + 1 - rows.length
    const step = await selectSignals(db.sql, promptId, stoppedAt, filter, missing, lookedAtPerStatement)
    rows.push(...step.rows)
    stoppedAt = step.stoppedAt
    if (!stoppedAt) break
  }
  const shown = rows.slice(0, limit)
  const next = rows.length > limit ? positionOf(shown.at(-1) as SignalRow) : stoppedAt
  return { data: shown, limit, nextCursor: next && encodeCursor(list, next) }
}

const positionOf = ({ id, created_at }: SignalRow): Position => ({ id, at: created_at })

const nameOfList = (promptId: number, { value, since, until, metadata }: SignalFilter): string =>
  JSON.stringify(['signals', promptId, value, since, until, metadata])

/** The JSON of a signal. Metadata is put in as the text it is: through JavaScript's numbers, large ones would change. */
export const signalJson = ({ id, value, metadata, created_at }: SignalRow): string =>
  `{"id":${id},"value":"${value}","metadata":${metadata ?? 'null'},"created_at":"${created_at.toISOString()}"}`
