import { oneLine } from '../lib/texts.ts'

type Value = string | number | boolean | null | Date | object

/** Writes the results of a command: as text for people, or as one JSON object per line for programs. */
export type Output = {
  show(row: Record<string, Value>): void
  /** Programs get the rows as JSON instead of columns. */
  table<T extends object>(rows: T[], columns: readonly (Column<T> | keyof T)[], toJson?: (row: T) => string): void
  /** Text of several lines. It may be of any origin, so characters that could steer a terminal are removed. */
  text(text: string): void
  /** A remark. Goes to standard error when standard output is for a program. */
  say(line: string): void
}

/** Blue and orange, which colour-blind people can tell apart, and grey. */
type Colour = 'blue' | 'orange' | 'grey'

/** A column of a table. A column that shows a field unchanged is given by the field's name. */
export type Column<T> = {
  name: string
  cell(row: T): string
  colour?(row: T): Colour | null
  isNumber?: true
}

type Streams = { out(text: string): void; err(text: string): void; hasColour: boolean }

const codes: Record<Colour, string> = { blue: '94', orange: '38;5;208', grey: '90' }

export const createOutput = (json: boolean, streams: Streams): Output =>
  json ? forPrograms(streams) : forPeople(streams)

const forPrograms = ({ out, err }: Streams): Output => ({
  show: (row) => out(`${JSON.stringify(row)}\n`),
  table: (rows, _, toJson = JSON.stringify) => out(rows.map((row) => `${toJson(row)}\n`).join('')),
  text: (text) => out(text),
  say: (line) => err(`${line}\n`),
})

const forPeople = ({ out, hasColour }: Streams): Output => ({
  show(row) {
    const width = Math.max(...Object.keys(row).map((name) => name.length))
    for (const [name, value] of Object.entries(row)) out(`${name.padEnd(width)}  ${oneLine(readable(value))}\n`)
  },
  table(rows, columns) {
    const drawn = columns.map((column) => {
      const { name, cell, colour, isNumber } = typeof column === 'object' ? column : columnOf(column)
      const cells = [name, ...rows.map((row) => oneLine(cell(row)))]
      const width = Math.max(...cells.map((text) => text.length))
      return cells.map((text, line) => {
        const aligned = isNumber ? text.padStart(width) : text.padEnd(width)
        const row = rows[line - 1]
        const shade = hasColour && row ? colour?.(row) : null
        return shade ? `\u001b[${codes[shade]}m${aligned}\u001b[0m` : aligned
      })
    })
    for (let line = 0; line <= rows.length; line++) {
      const cells = drawn.map((column) => column[line])
      out(`${cells.join('  ').trimEnd()}\n`)
    }
  },
  text: (text) => out(text.split('\n').map(oneLine).join('\n')),
  say: (line) => out(`${line}\n`),
})

const columnOf = <T extends object>(field: keyof T): Column<T> => ({
  name: String(field),
  cell: (row) => readable((row[field] as Value | undefined) ?? null),
})

function readable(value: Value): string {
  if (value === null) return '-'
  if (value instanceof Date) return value.toISOString()
  if (typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return value.join(',') || '-'
  return 'name' in value && 'email' in value ? `${value.name} <${value.email}>` : JSON.stringify(value)
}

export const writeOut = (chunk: string | Uint8Array): Promise<void> =>
  new Promise((resolve, reject) => process.stdout.write(chunk, (error) => (error ? reject(error) : resolve())))
