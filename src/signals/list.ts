import type { Db } from '../db/client.ts'
import { decodeCursor, encodeCursor } from '../lib/cursor_page.ts'
import type { Prompt } from '../prompts/find.ts'
import type { SignalListQuery } from './schema_params.ts'
import { type Position, type SignalFilter, type SignalRow, selectSignals } from './store_reads.ts'

export type { SignalRow }

/** How many signals one request examines. */
const maxExamined = 5_000
/** How many one statement examines: the embedded engine does nothing else meanwhile. */
const examinedPerStatement = 1_000

/** Whether signals have to be examined one by one. A range of time only needs the index. */
export const isSearch = ({ value, metadata }: SignalFilter): boolean => value !== null || metadata.length > 0

/** A page of signals, newest first. With a filter it may be empty although it is not the last page. */
export async function listSignals(db: Db, prompt: Prompt, { filter, page: { limit, cursor } }: SignalListQuery) {
  const { value, since, until, metadata } = filter
  const list = JSON.stringify(['signals', prompt.id, value, since, until, metadata])
  const rows: SignalRow[] = []
  let stoppedAt = decodeCursor(list, cursor) as Position | null
  for (let examined = 0; examined < maxExamined; examined += examinedPerStatement) {
    const missing = limit + 1 - rows.length
    const step = await selectSignals(db.sql, prompt, stoppedAt, filter, missing, examinedPerStatement)
    rows.push(...step.rows)
    stoppedAt = step.stoppedAt
    if (!stoppedAt) break
  }
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const next = last && rows.length > limit ? { id: last.id, at: last.created_at } : stoppedAt
  return { data: shown, limit, nextCursor: next && encodeCursor(list, next) }
}

/** The JSON of a signal. The metadata is JSON already: parsing it would change large numbers. */
export const signalJson = ({ id, value, metadata, created_at }: SignalRow): string =>
  `{"id":${id},"value":"${value}","metadata":${metadata ?? 'null'},"created_at":"${created_at.toISOString()}"}`
