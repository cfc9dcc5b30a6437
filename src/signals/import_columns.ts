// Turns the lines of a file with columns of its own into those of an export.
import { atLine } from '../lib/input.ts'
import { keepLongNumbers } from '../lib/json.ts'
import { splitRecord, unreadable } from './import.ts'

/** From fields to the columns that they are read from, and the texts that stand for a positive signal. */
export type Columns = { columnOf: Map<string, string>; positive: string[] | null }

/** Each line becomes one, so that errors name the right one; a heading, or a line without a value, an empty one. */
export async function* convertLines(lines: AsyncIterable<string>, columns: Columns): AsyncGenerator<string> {
  let heading: string[] | undefined
  let lineNumber = 0
  for await (const given of lines) {
    lineNumber += 1
    const line = given.replace(/\r$/, '')
    const isHeading = heading === undefined && line.trim() !== '' && !line.startsWith('{')
    yield await atLine(lineNumber, async () => {
      if (line.trim() === '') return ''
      if (isHeading) {
        heading = splitRecord(line)
        requireColumns(heading, columns)
        return ''
      }
      return convert(heading ? readCells(heading, line) : readObject(line), columns)
    })
  }
}

function requireColumns(heading: string[], { columnOf }: Columns): void {
  const missing = [...columnOf.values()].find((column) => !heading.includes(column))
  if (missing !== undefined) throw unreadable(`The file has no column ${missing}.`)
}

const ownFields = ['value', 'created_at', 'subject']

function convert(row: Record<string, unknown>, { columnOf, positive }: Columns): string {
  const read = (field: string) => row[columnOf.get(field) ?? field]
  const value = read('value')
  if (value === undefined || value === null || value === '') return ''
  const named = [...columnOf].flatMap(([field, column]) => (ownFields.includes(field) ? [] : [[field, row[column]]]))
  const metadata = { ...(row.metadata as object | undefined), ...Object.fromEntries(named) }
  const subject = read('subject')
  return JSON.stringify({
    value: positive === null ? value : positive.includes(String(value)) ? 'positive' : 'negative',
    created_at: toInstant(read('created_at')),
    metadata,
    ...(subject ? { subject: String(subject) } : {}),
  })
}

/** Seconds or milliseconds since 1970 become a time. */
function toInstant(time: unknown): unknown {
  const digits = String(time)
  if (!/^(\d{9,10}|\d{12,13})$/.test(digits)) return time
  return new Date(Number(digits) * (digits.length > 10 ? 1 : 1_000)).toISOString()
}

function readCells(heading: string[], line: string): Record<string, unknown> {
  const cells = splitRecord(line)
  if (cells.length !== heading.length) throw unreadable(`This record has ${cells.length} cells, not ${heading.length}.`)
  const row: Record<string, unknown> = Object.fromEntries(heading.map((name, index) => [name, cells[index]]))
  return { ...row, metadata: row.metadata ? readObject(String(row.metadata)) : undefined }
}

function readObject(line: string): Record<string, unknown> {
  try {
    const row = JSON.parse(line, keepLongNumbers)
    if (typeof row === 'object' && row !== null) return row
  } catch {
    // Reported below.
  }
  throw unreadable('This is not a JSON object.')
}
