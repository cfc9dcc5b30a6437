import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { invalid, notFound } from '../errors.ts'
import { atLine, parseJsonLine } from '../lib/input.ts'
import { createValidator } from '../lib/validate.ts'
import { type Prompt, requirePrompt } from '../prompts/find.ts'
import type { ReportedEntry } from './identity.ts'
import { fromClient, parseEntry, recordLocked } from './record.ts'
import { NewHistoryEntry } from './schema.ts'
import { lockHistories } from './store_write.ts'

const entriesPerBatch = 2_000

const validate = createValidator(NewHistoryEntry, 'The history entry')

/**
 * Records one entry per line, all or nothing, and returns the numbers of new and of known ones. The lines are read twice:
 * first to check them and to learn the prompts, because these have to be locked in order before the first entry is written.
 * Unless the lines of each prompt are in order of time, all are sorted in memory: whether an entry is a rollback depends on
 * the prompt's entries before it.
 */
export async function importHistory(
  db: Db,
  clock: Clock,
  readLines: () => AsyncIterable<string>,
  onProgress: (lines: number, state: 'checked' | 'recorded', share: number | null) => void,
): Promise<{ recorded: number; known: number }> {
  const prompts = new Map<string, Prompt>()
  const lastTimes = new Map<string, number>()
  let isSorted = true
  let total = 0
  for await (const { prompt, entry, lineNumber } of parseLines(readLines(), clock)) {
    const time = entry.created_at.getTime()
    isSorted &&= time >= (lastTimes.get(prompt) ?? time)
    lastTimes.set(prompt, time)
    total += 1
    if (!prompts.has(prompt)) prompts.set(prompt, await atLine(lineNumber, () => requirePrompt(db.sql, prompt)))
    if (total % entriesPerBatch === 0) onProgress(total, 'checked', null)
  }

  return db.transaction(async (sql) => {
    const byOrganisation = [...Map.groupBy(prompts.values(), ({ organisationId }) => organisationId)]
    for (const [organisationId, owned] of byOrganisation.sort(([one], [other]) => one - other)) {
      const [ids, publicIds] = [owned.map(({ id }) => id), owned.map(({ publicId }) => publicId)]
      if (!(await lockHistories(sql, organisationId, ids, publicIds))) throw notFound()
    }
    let [done, recorded] = [0, 0]
    let batch: (ReportedEntry & { organisationId: number })[] = []
    const lines = parseLines(readLines(), clock)
    for await (const { prompt, entry, isTimed } of isSorted ? lines : await sortByTime(lines)) {
      const { id: prompt_id, organisationId } = prompts.get(prompt) as Prompt
      batch.push({ ...entry, ...fromClient, prompt_id, organisationId, covers: [], isTimed })
      done += 1
      if (batch.length < entriesPerBatch && done < total) continue
      for (const [owner, entries] of Map.groupBy(batch, (one) => one.organisationId)) {
        const { inserts } = await recordLocked(sql, owner, entries)
        recorded += inserts.length
      }
      batch = []
      onProgress(done, 'recorded', done / total)
    }
    return { recorded, known: total - recorded }
  })
}

const sortByTime = async <T extends { entry: { created_at: Date } }>(lines: AsyncIterable<T>): Promise<T[]> =>
  (await Array.fromAsync(lines)).sort((a, b) => a.entry.created_at.getTime() - b.entry.created_at.getTime())

/** Skips blank lines. */
async function* parseLines(lines: AsyncIterable<string>, clock: Clock) {
  let lineNumber = 0
  for await (const line of lines) {
    lineNumber += 1
    if (line.trim() === '') continue
    yield await atLine(lineNumber, async () => {
      const { prompt, ...given } = parseLine(line)
      const entry = validate(given)
      return { lineNumber, prompt, entry: parseEntry(entry, clock), isTimed: entry.created_at !== undefined }
    })
  }
}

function parseLine(line: string): { prompt: string } & Record<string, unknown> {
  const value = parseJsonLine(line)
  const prompt = (value as { prompt?: unknown } | null)?.prompt
  if (typeof prompt !== 'string') {
    throw invalid('The history entry is not valid.', [{ path: '/prompt', message: 'must be a prompt id' }])
  }
  return value as { prompt: string }
}
