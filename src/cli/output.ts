type Value = string | number | boolean | null | Date | object
type Row = Record<string, Value>

/** Writes the results of a command: as text for a person, or as one JSON object a line for a program. */
export type Output = {
  /** One result: a line for each of its fields. */
  show(row: Row): void
  /** Results of one kind: a table. */
  list(rows: Row[], columns: string[]): void
  /** The same with columns that are written for a person, in colour on a terminal; a program gets the rows as JSON. */
  table<T extends object>(rows: T[], columns: Column<T>[], toJson?: (row: T) => string): void
  /** A remark beside the results; it goes to standard error when standard output is for a program. */
  say(line: string): void
}

/** Blue and orange, which the colour-blind tell apart, and grey. */
type Colour = 'blue' | 'orange' | 'grey'

/** A column of a table: its heading, and what it shows of a row. */
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
  list: (rows) => out(rows.map((row) => `${JSON.stringify(row)}\n`).join('')),
  table: (rows, _, toJson = JSON.stringify) => out(rows.map((row) => `${toJson(row)}\n`).join('')),
  say: (line) => err(`${line}\n`),
})

const forPeople = ({ out, hasColour }: Streams): Output => ({
  show(row) {
    const width = Math.max(...Object.keys(row).map((name) => name.length))
    for (const [name, value] of Object.entries(row)) out(`${name.padEnd(width)}  ${readable(value)}\n`)
  },
  list(rows, columns) {
    const lines = [columns, ...rows.map((row) => columns.map((column) => readable(row[column] ?? null)))]
    const widths = columns.map((_, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0)))
    for (const line of lines) {
      const cells = line.map((cell, index) => cell.padEnd(widths[index] ?? 0))
      out(`${cells.join('  ').trimEnd()}\n`)
    }
  },
  table(rows, columns) {
    const cells = columns.map((column) => [column.name, ...rows.map((row) => column.cell(row))])
    const widths = cells.map((column) => Math.max(...column.map((cell) => cell.length)))
    const align = (index: number, text: string) =>
      columns[index]?.isNumber ? text.padStart(widths[index] ?? 0) : text.padEnd(widths[index] ?? 0)
    out(
      `${columns
        .map(({ name }, index) => align(index, name))
        .join('  ')
        .trimEnd()}\n`,
    )
    rows.forEach((row, line) => {
      const shown = columns.map((column, index) => {
        const text = align(index, cells[index]?.[line + 1] ?? '')
        const colour = hasColour ? column.colour?.(row) : null
        return colour ? `\u001b[${codes[colour]}m${text}\u001b[0m` : text
      })
      out(`${shown.join('  ').trimEnd()}\n`)
    })
  },
  say: (line) => out(`${line}\n`),
})

function readable(value: Value): string {
  if (value === null) return '-'
  if (value instanceof Date) return value.toISOString()
  if (typeof value !== 'object') return String(value)
  if (Array.isArray(value)) return value.join(',') || '-'
  return 'name' in value && 'email' in value ? `${value.name} <${value.email}>` : JSON.stringify(value)
}
