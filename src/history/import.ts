import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { invalid, ServiceError } from '../errors.ts'
import { requirePrompt } from '../prompts/find.ts'
import { parseEntry } from './entry.ts'
import { type EntryToRecord, recordStagedEntries, stageEntries } from './store_write.ts'

const entriesPerInsert = 5_000

/**
 * Records one entry a line, all or nothing, and returns how many were new. The error names a line that is not valid.
 */
export function importHistory(
  db: Db,
  clock: Clock,
  lines: AsyncIterable<string>,
  onProgress: (lines: number) => void,
): Promise<{ recorded: number }> {
  return db.transaction(async (sql) => {
    const promptIds = new Map<string, number>()
    let waiting: EntryToRecord[] = []
    let staged = 0
    let lineNumber = 0

    async function readLine(line: string): Promise<EntryToRecord> {
      const { prompt, ...given } = parseLine(line)
      const entry = parseEntry(given, clock)
      const known = promptIds.get(prompt) ?? (await requirePrompt(sql, prompt)).id
      promptIds.set(prompt, known)
      return { ...entry, prompt_id: known }
    }

    async function flush(): Promise<void> {
      if (waiting.length > 0) await stageEntries(sql, staged, waiting)
      staged += waiting.length
      waiting = []
      onProgress(lineNumber)
    }

    for await (const line of lines) {
      lineNumber += 1
      if (line.trim() === '') continue
      waiting.push(await readLine(line).catch((error) => Promise.reject(atLine(lineNumber, error))))
      if (waiting.length === entriesPerInsert) await flush()
    }
    await flush()
    return { recorded: await recordStagedEntries(sql) }
  })
}

function parseLine(line: string): { prompt: string } & Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch {
    throw new ServiceError('validation_error', 'This is not JSON.')
  }
  const prompt = (value as { prompt?: unknown } | null)?.prompt
  if (typeof prompt !== 'string') {
    throw invalid('The history entry is not valid.', [{ path: '/prompt', message: 'must be a prompt id' }])
  }
  return value as { prompt: string }
}

function atLine(lineNumber: number, error: unknown): unknown {
  if (!(error instanceof ServiceError)) return error
  return new ServiceError(error.code, `Line ${lineNumber}: ${error.message}`, error.context)
}
