import { invalid, ServiceError } from '../errors.ts'
import { atLine, parseJsonLine } from '../lib/input.ts'
import { parseInstant } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import { keepNumbers, maxExportedBytes, writeMetadata } from './metadata.ts'
import { ImportedRow, ImportedSignal } from './schema.ts'
import type { PastSignal } from './store_bulk.ts'

/** From fields to the columns that they are read from, and the texts that stand for a positive signal. */
export type Columns = { columnOf: Map<string, string>; positive: string[] | null }

const validateSignal = createValidator(ImportedSignal, 'The signal')
const validateRow = createValidator(ImportedRow, 'The signal')

type Row = Record<string, unknown>

const unreadable = (message: string) => new ServiceError('validation_error', message)

/** Parses NDJSON, or CSV with a heading: the export of one prompt, or a file with columns of its own. */
export async function* parseLines(lines: AsyncIterable<string>, now: Date, columns?: Columns) {
  let lineNumber = 0
  let isFirst = true
  let heading: string[] | undefined
  let source: string | undefined
  for await (const given of lines) {
    lineNumber += 1
    const line = given.replace(/\r$/, '')
    if (line.trim() === '') continue
    const signal = await atLine(lineNumber, async () => {
      const isHeading = isFirst && !line.startsWith('{')
      isFirst = false
      if (isHeading) {
        heading = parseHeading(line, columns)
        return undefined
      }
      const parsed = parseSignal(heading ? toJson(heading, splitRecord(line)) : line, now, columns)
      source ??= parsed?.prompt
      if (parsed?.prompt && parsed.prompt !== source)
        throw unreadable('The file has signals of several prompts: import one prompt at a time.')
      return parsed
    })
    if (signal) yield signal
  }
}

function parseHeading(line: string, columns?: Columns): string[] {
  const heading = splitRecord(line)
  const needed = columns?.columnOf.values() ?? ['value', 'created_at']
  const missing = [...needed].find((column) => !heading.includes(column))
  if (missing === undefined) return heading
  if (columns) throw unreadable(`The file has no column ${missing}.`)
  throw unreadable('This is neither NDJSON nor CSV with a heading: the columns value and created_at are missing.')
}

/** Undefined for a line without a value, in a file with columns of its own. */
function parseSignal(line: string, now: Date, columns?: Columns): (PastSignal & { prompt?: string }) | undefined {
  const row = parseJsonLine(line) as Row
  if (columns) validateRow(row)
  const exact = keepNumbers(line, row)
  const fields = columns ? readColumns(row, exact, columns) : row
  if (columns && fields.value === '') return undefined
  const { value, created_at, prompt, subject } = validateSignal(fields)
  const { metadata } = (columns ? fields : exact) as ImportedSignal
  const createdAt = parseInstant(created_at)
  if (!createdAt || createdAt > now) {
    const message = 'must be an ISO 8601 time with its zone, and not in the future'
    throw invalid('The signal is not valid.', [{ path: '/created_at', message }])
  }
  const json = metadata ? writeMetadata(metadata, maxExportedBytes) : null
  return { value, metadata: json, createdAt, subject, ...(prompt ? { prompt } : {}) }
}

const ownFields = ['value', 'created_at', 'subject']

/** Reads the fields of a signal. Others go to the metadata. Long numbers of the metadata and the subject stay exact. */
function readColumns(row: Row, exact: Row, { columnOf, positive }: Columns): Row {
  const read = (from: Row, field: string) => from[columnOf.get(field) ?? field] ?? ''
  const value = read(row, 'value')
  const others = [...columnOf].filter(([field]) => !ownFields.includes(field))
  const named = others.map(([field, column]) => [field, exact[column]])
  return {
    value: positive === null || value === '' ? value : positive.includes(textOf(value)) ? 'positive' : 'negative',
    created_at: toInstant(read(row, 'created_at')),
    subject: textOf(read(exact, 'subject')) || undefined,
    metadata: { ...(exact.metadata as object | null), ...Object.fromEntries(named) },
  }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** Seconds or milliseconds since 1970 become a time. */
function toInstant(time: unknown): unknown {
  const digits = textOf(time)
  if (!/^(\d{9,10}|\d{12,13})$/.test(digits)) return time
  return new Date(Number(digits) * (digits.length > 10 ? 1 : 1_000)).toISOString()
}

/** The metadata comes first, so that nothing in it can take the place of another field. */
function toJson(heading: string[], cells: string[]): string {
  if (cells.length !== heading.length) throw unreadable(`This record has ${cells.length} cells, not ${heading.length}.`)
  const { metadata, subject, ...others } = Object.fromEntries(heading.map((column, index) => [column, cells[index]]))
  // See the export for the apostrophe.
  const row = { subject: subject?.replace(/^'(?=[-=+@'])/, '') || undefined, ...others }
  return `{"metadata":${metadata || 'null'},${JSON.stringify(row).slice(1)}`
}

function splitRecord(line: string): string[] {
  const cell = /(?:"((?:[^"]|"")*)"|([^",]*))(,|$)/y
  const cells: string[] = []
  for (;;) {
    const [, quoted, plain, end] = cell.exec(line) ?? []
    if (end === undefined) throw unreadable('This is not a CSV record of one line.')
    cells.push(quoted?.replaceAll('""', '"') ?? plain ?? '')
    if (end === '') return cells
  }
}
