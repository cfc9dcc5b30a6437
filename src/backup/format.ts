// A backup is gzipped lines of JSON: an object with the head, then for each table an object that names it and an array
// for each of its rows, then an object for each sequence, and one at the end. Whatever is cut off lacks the end.

const format = 'prompt-signals backup 1'

export type Head = { schemaVersion: number }

export type Part =
  | { table: string; columns: string[] }
  | { sequence: string; value: string }
  /** With the number of all the rows. */
  | { end: number }

/** Thrown for a file that is not, or is no longer, a backup. */
export class BackupError extends Error {}

export const formatHead = (schemaVersion: number, madeBy: string, madeAt: Date): string =>
  formatObject({ format, schema_version: schemaVersion, made_by: madeBy, made_at: madeAt.toISOString() })

export const formatPart = (part: Part): string => formatObject(part)

const formatObject = (value: object): string => `${JSON.stringify(value)}\n`

export function readHead(line: string | undefined): Head {
  const head = line === undefined ? undefined : parse(line)
  if (head?.format !== format || !Number.isSafeInteger(head.schema_version)) {
    throw notOurs()
  }
  return { schemaVersion: head.schema_version as number }
}

export function readPart(line: string): Part {
  const part = parse(line)
  if (!part || !['table', 'sequence', 'end'].some((name) => Object.hasOwn(part, name))) throw damaged()
  return part as Part
}

/** A row is passed on as it is; only the database looks into it. */
export const isRow = (line: string): boolean => line.startsWith('[')

export const notOurs = (): BackupError => new BackupError('This is not a backup made by prompt-signals.')

export const damaged = (): BackupError => new BackupError('The backup is damaged or cut off. Nothing was restored.')

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(line)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
