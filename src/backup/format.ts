// Gzipped lines of JSON: the header, then each table (an object, and an array for each row), each sequence, and an end
// with the number of all rows. A backup that was cut off lacks the end; gzip's checksum finds any other damage.

const format = 'prompt-signals backup 1'

export type Part = { table: string; columns: string[] } | { sequence: string; value: string } | { end: number }

export const formatHeader = (schemaVersion: number, madeBy: string, madeAt: Date): string =>
  formatLine({ format, schema_version: schemaVersion, made_by: madeBy, made_at: madeAt.toISOString() })

export const formatLine = (value: Part | Record<string, unknown>): string => `${JSON.stringify(value)}\n`

export function parseHeader(line: string | undefined): number {
  const header = line === undefined ? undefined : parse(line)
  if (header?.format !== format || !Number.isSafeInteger(header.schema_version)) throw notOurs()
  return header.schema_version as number
}

export function parsePart(line: string): Part {
  const part = parse(line)
  if (!part || !['table', 'sequence', 'end'].some((name) => Object.hasOwn(part, name))) throw damaged()
  return part as Part
}

/** Rows are passed to the database as they are. */
export const isRow = (line: string): boolean => line.startsWith('[')

/** Deeper than any JSON of the service. Postgres fails far deeper, and the embedded engine never ends there. */
const maxDepth = 100

/** Whether a row is a flat list, whose JSON is not deeply nested. */
export function isShallow(line: string, columns: { isJson: boolean }[]): boolean {
  if (depthOf(line) > 1) return false
  if (!columns.some(({ isJson }) => isJson)) return true
  const row = parse(line) as (string | null)[] | undefined
  return columns.every(({ isJson }, index) => !isJson || depthOf(row?.[index] ?? '') <= maxDepth)
}

function depthOf(json: string): number {
  const brackets =
    json
      .replace(/\\./gs, '')
      .replace(/"[^"]*"/g, '')
      .match(/[[\]{}]/g) ?? []
  let [depth, deepest] = [0, 0]
  for (const bracket of brackets) {
    depth += bracket === '[' || bracket === '{' ? 1 : -1
    deepest = Math.max(deepest, depth)
  }
  return deepest
}

export const notOurs = () =>
  new Error('This is not a backup made by prompt-signals, or it is damaged. Nothing was restored.')

export const damaged = () => new Error('The backup is damaged or cut off. Nothing was restored.')

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
