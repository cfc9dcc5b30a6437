import { cut, number, oneLine } from '../lib/texts.ts'

type Value = string | number | boolean | null | Date | object

/** Writes the results of a command: as text for people, or as one JSON object per line for programs. */
export type Output = {
  show(row: Record<string, Value>): void
  /** Programs get the rows as JSON instead of columns. */
  table<T extends object>(rows: T[], columns: readonly AnyColumn<T>[]): void
  /** Text of several lines. It may be of any origin, so characters that could steer a terminal are removed. */
  text(text: string): void
  /** A remark. Goes to standard error when standard output is for a program. */
  say(line: string): void
}

/** A column that shows a field unchanged is given by the field's name; with "…" behind it, its cells may be cut. */
export type AnyColumn<T> = Column<T> | (keyof T & string) | `${keyof T & string}…`

export type Column<T> = {
  name: string
  cell(row: T): string
  isNumber?: true
  /** Whether its cells may be cut to make the table fit. */
  shrinks?: true
}

/** Tables are at most this wide, unless the columns that cannot shrink need more. */
const maxWidth = 120
const minShrunk = 8
const gap = '  '

type Streams = { out(text: string): void; err(text: string): void }

export const createOutput = (json: boolean, streams: Streams): Output =>
  json ? forPrograms(streams) : forPeople(streams)

const forPrograms = ({ out, err }: Streams): Output => ({
  show: (row) => out(`${JSON.stringify(row)}\n`),
  table: (rows) => out(rows.map((row) => `${JSON.stringify(row)}\n`).join('')),
  text: (text) => out(text),
  say: (line) => err(`${line}\n`),
})

const forPeople = ({ out }: Streams): Output => ({
  show(row) {
    const width = Math.max(...Object.keys(row).map((name) => name.length))
    for (const [name, value] of Object.entries(row)) out(`${name.padEnd(width)}  ${oneLine(readable(name, value))}\n`)
  },
  table(rows, columns) {
    const all = columns.map((column) => (typeof column === 'string' ? columnOf<(typeof rows)[number]>(column) : column))
    const drawn = all
      .map((column) => ({ ...column, cells: [column.name, ...rows.map((row) => oneLine(column.cell(row)))] }))
      // A column without a value only takes up room.
      .filter(({ cells }) => rows.length === 0 || cells.slice(1).some((text) => text !== '-'))
    const widths = fitWidths(
      drawn.map(({ cells }) => Math.max(...cells.map((text) => text.length))),
      drawn.map(({ shrinks }) => shrinks === true),
    )
    for (let line = 0; line <= rows.length; line++) {
      const cells = drawn.map(({ cells, isNumber }, index) => {
        const width = widths[index] as number
        const text = shorten(cells[line] as string, width)
        return isNumber ? text.padStart(width) : text.padEnd(width)
      })
      out(`${cells.join(gap).trimEnd()}\n`)
    }
  },
  text: (text) => out(text.replace(/[^\n\t]+/g, oneLine)),
  say: (line) => out(`${line}\n`),
})

/** Takes from the widest column that may shrink until the table fits. */
function fitWidths(widths: number[], mayShrink: boolean[]): number[] {
  const fitted = [...widths]
  const width = () => fitted.reduce((sum, one) => sum + gap.length + one, -gap.length)
  for (;;) {
    const widest = Math.max(...fitted.filter((_, index) => mayShrink[index]))
    if (width() <= maxWidth || widest <= minShrunk) return fitted
    fitted[fitted.findIndex((one, index) => one === widest && mayShrink[index])] = widest - 1
  }
}

const shorten = (text: string, width: number): string => (text.length > width ? `${cut(text, width - 1)}…` : text)

/** Times are cut to the minute. They are UTC. */
function columnOf<T extends object>(field: string): Column<T> {
  const name = field.replace('…', '')
  const cell = (row: T) => minuteOf(readable(name, (row[name as keyof T] as Value | undefined) ?? null))
  return { name, cell, ...(name !== field && { shrinks: true }) }
}

/** The minute of an ISO 8601 time. Other texts stay. */
export const minuteOf = (text: string): string => text.replace(/^([\d-]{10})T(\d\d:\d\d):\d\d\.\d{3}Z$/, '$1 $2')

function readable(name: string, value: Value): string {
  if (value === null) return '-'
  // A number that names something is pasted into other commands.
  if (typeof value === 'number' && !/^id$|_(id|number)$/.test(name)) return number(value)
  if (value instanceof Date) return value.toISOString()
  if (typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return value.join(',') || '-'
  return 'name' in value && 'email' in value ? `${value.name} <${value.email}>` : JSON.stringify(value)
}

export const writeOut = (chunk: string | Uint8Array): Promise<void> =>
  new Promise((resolve, reject) => {
    process.stdout.write(chunk, (error) => {
      if (error) reject(new Error(`The output cannot be written: ${error.message}`))
      else resolve()
    })
  })
