import type { Db } from '../db/client.ts'
import type { OwnSignals } from '../impact/own_signals.ts'
import { decodeCursor, encodeCursor } from '../lib/cursor_page.ts'
import { invalidQuery } from '../lib/params.ts'
import { type Prompt, readPrompts } from '../prompts/find.ts'
import type { ExportQuery, SignalListQuery } from './schema_params.ts'
import {
  csvHeading,
  type ExportPosition,
  findSignal,
  type Position,
  type Range,
  type SignalRow,
  selectLines,
  selectSignals,
} from './store_reads.ts'

export type { SignalRow }

/** How many signals one request examines. */
const maxExamined = 5_000
/** How many one statement examines: the embedded engine does nothing else meanwhile. */
const examinedPerStatement = 1_000

/** Whether signals have to be examined one by one. A range of time only needs the index. */
export const isSearch = ({ filter: { value, metadata }, change }: SignalListQuery): boolean =>
  value !== null || metadata.length > 0 || change !== null

/** A page of signals, newest first. With a filter it may be empty although it is not the last page. */
export async function listSignals(
  db: Db,
  prompt: Prompt,
  { filter, change, page: { limit, cursor } }: SignalListQuery,
  own?: OwnSignals,
) {
  const { value, since, until, metadata } = filter
  const list = JSON.stringify(['signals', prompt.id, value, since, until, metadata, change])
  const rows: SignalRow[] = []
  const ranges = rangesOf(filter, decodeCursor(list, cursor) as Position | null, own)
  for (let examined = 0; examined < maxExamined && rows.length <= limit; examined += examinedPerStatement) {
    const [range] = ranges
    if (!range) break
    const missing = limit + 1 - rows.length
    const step = await selectSignals(db.sql, prompt, range, { value, metadata, own }, missing, examinedPerStatement)
    rows.push(...step.rows)
    if (step.stoppedAt) range.before = step.stoppedAt
    else ranges.shift()
  }
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const next = last && rows.length > limit ? { id: last.id, at: last.created_at } : ranges[0]?.before
  return { data: shown, limit, nextCursor: next ? encodeCursor(list, next) : null }
}

/** What to examine, newest first. */
function rangesOf(
  { since, until }: SignalListQuery['filter'],
  cursor: Position | null,
  own: OwnSignals | undefined,
): Range[] {
  const before = cursor ?? (until && { id: 0, at: until })
  if (!own) return [{ since, before }]
  return own.runs
    .map((run) => ({
      since: since && since > run.since ? since : run.since,
      before: before && before.at < run.until ? before : { id: 0, at: run.until },
    }))
    .filter((range) => range.since <= range.before.at)
}

/** The JSON of a signal. The metadata is JSON already: parsing it would change large numbers. */
export const signalJson = ({ id, value, metadata, created_at, subject }: SignalRow): string =>
  `{"id":${id},"value":"${value}","metadata":${metadata ?? 'null'},"created_at":"${created_at.toISOString()}"${
    subject === null ? '' : `,"subject":${JSON.stringify(subject)}`
  }}`

/** Whose signals: those of one prompt, or of all prompts of the organisation. */
export type SignalSource = { organisationId: number; prompt: Prompt | null }

export type ExportStep = { text: string; signals: number }

/** Bounds of a step: the embedded engine does nothing else meanwhile, and the service holds its lines in memory. */
const [minRows, maxRows, maxBytes] = [50, 2_000, 1024 * 1024]
/** The first step is short: the size of the metadata is not known yet. */
const firstRows = 250

/**
 * Exports a source in steps of one short statement each: prompt by prompt, and the signals of a prompt in order of time.
 * No snapshot is held, because the order of signals does not change.
 */
export async function* exportSignals(db: Db, source: SignalSource, query: ExportQuery): AsyncGenerator<ExportStep> {
  const last = query.after === null ? undefined : await requireSignal(db, source, query.after)
  if (!last && query.format === 'csv') yield { text: csvHeading, signals: 0 }
  const start: ExportPosition = { at: query.since, id: 0 }
  if (last) yield* exportPrompt(db, last, laterOf(start, { at: last.at, id: query.after as number }), query)
  if (source.prompt) {
    if (!last) yield* exportPrompt(db, source.prompt, start, query)
    return
  }
  for await (const prompts of readPrompts(db, source.organisationId, last?.id)) {
    for (const prompt of prompts) {
      yield* exportPrompt(db, prompt, start, query)
      // An empty step starts the response, even if the first thousands of prompts have no signals.
      yield { text: '', signals: 0 }
    }
  }
}

const laterOf = (start: ExportPosition, last: ExportPosition): ExportPosition =>
  start.at && last.at && start.at > last.at ? start : last

async function requireSignal(db: Db, { organisationId, prompt }: SignalSource, id: number) {
  const found = await db.heavyRead(organisationId, () => findSignal(db.sql, organisationId, id))
  if (found && (!prompt || prompt.id === found.id)) return found
  throw invalidQuery({
    path: 'after',
    message: 'must be the id of a signal of this export; if it was erased, of an earlier one',
  })
}

async function* exportPrompt(db: Db, prompt: Prompt, start: ExportPosition, query: ExportQuery) {
  let rows = firstRows
  for (let after = start; ; ) {
    const step = await db.heavyRead(prompt.organisationId, () =>
      selectLines(db.sql, prompt, after, query, rows, maxBytes),
    )
    const { lines, exported, examined, lastTime, lastId } = step
    if (examined === 0) return
    // A step without lines is yielded too, so that the response starts while the export searches for a rare value.
    yield { text: lines ?? '', signals: exported }
    after = { at: lastTime, id: lastId }
    rows = Math.min(Math.max(2 * examined, minRows), maxRows)
  }
}
