import { invalid, ServiceError } from '../errors.ts'
import { parseJsonLine } from '../lib/input.ts'
import { parseInstant } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import { parseMetadata } from './metadata.ts'
import { ImportedSignal } from './schema.ts'
import type { SignalToWrite } from './store.ts'

/** A signal of any time in the past. Its metadata is JSON. */
export type PastSignal = Pick<SignalToWrite, 'value' | 'metadata' | 'createdAt'>

const validateLine = createValidator(ImportedSignal, 'The signal')

const unreadable = (message: string) => new ServiceError('validation_error', message)

/** Creates a parser of the lines of an export: NDJSON, or CSV with a heading. Undefined for a line without a signal. */
export function createLineParser(now: Date): (line: string) => (PastSignal & { prompt?: string }) | undefined {
  let isFirst = true
  let columns: string[] | undefined
  return (given) => {
    const line = given.replace(/\r$/, '')
    if (line.trim() === '') return undefined
    if (isFirst) {
      isFirst = false
      if (!line.startsWith('{')) {
        columns = parseHeading(line)
        return undefined
      }
    }
    return parseSignal(columns ? toJson(columns, splitRecord(line)) : line, now)
  }
}

function parseHeading(line: string): string[] {
  const columns = splitRecord(line)
  if (columns.includes('value') && columns.includes('created_at')) return columns
  throw unreadable('This is neither NDJSON nor CSV with a heading: the columns value and created_at are missing.')
}

function parseSignal(line: string, now: Date): PastSignal & { prompt?: string } {
  const { value, metadata, created_at, prompt } = validateLine(parseJsonLine(line))
  const createdAt = parseInstant(created_at)
  if (!createdAt || createdAt > now) {
    const message = 'must be an ISO 8601 time with its zone, and not in the future'
    throw invalid('The signal is not valid.', [{ path: '/created_at', message }])
  }
  return { value, metadata: metadata ? parseMetadata(line) : null, createdAt, ...(prompt ? { prompt } : {}) }
}

/** The metadata comes first, so that nothing in it can take the place of another field. */
function toJson(columns: string[], cells: string[]): string {
  if (cells.length !== columns.length) throw unreadable(`This record has ${cells.length} cells, not ${columns.length}.`)
  const cellOf = (name: string) => cells[columns.indexOf(name)]
  const others = ['value', 'created_at', 'prompt'].map((name) => `"${name}":${JSON.stringify(cellOf(name) ?? '')}`)
  return `{"metadata":${cellOf('metadata') || 'null'},${others}}`
}

/** Splits a CSV record of one line. */
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
