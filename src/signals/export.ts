import type { Db } from '../db/client.ts'
import { invalidQuery } from '../lib/params.ts'
import { type PromptIds, readPrompts } from '../prompts/find.ts'
import type { ExportQuery } from './schema_params.ts'
import { type ExportPosition, findSignal, selectLines } from './store_export.ts'

/** Whose signals are exported: those of one prompt, or of all prompts of the organisation. */
export type ExportSource = { organisationId: number; prompt: PromptIds | null }

/** Lines of an export, and how many signals they are. */
export type ExportStep = { text: string; signals: number }

/** Runs the statement of a step, in the organisation's share of the database. */
type RunStep = <T>(step: () => Promise<T>) => Promise<T>

/** A step takes some milliseconds, in which the embedded engine does nothing else; and as much memory as its text. */
const [maxRows, maxBytes] = [2_000, 1024 * 1024]
/** The first step: how large the metadata of a prompt is shows only then. */
const firstRows = 250
/** A step that stopped at its bytes is followed by ones of fewer signals, which would be read in vain. */
const minRows = 50

const csvHeading = 'id,prompt,value,created_at,metadata\r\n'

/**
 * Reads all signals of a source in steps, each a short statement of its own: prompt by prompt, and those of a prompt in the
 * order of their times. No snapshot is held, and none is needed: signals do not change.
 */
export async function* exportSignals(
  db: Db,
  source: ExportSource,
  query: ExportQuery,
  run: RunStep = (step) => step(),
): AsyncGenerator<ExportStep> {
  const last = query.after === null ? undefined : await run(() => requireSignal(db, source, query.after as number))
  if (!last && query.format === 'csv') yield { text: csvHeading, signals: 0 }
  const start: ExportPosition = { at: query.since, id: 0 }
  if (last) yield* exportPrompt(db, last, laterOf(start, { at: last.at, id: query.after as number }), query, run)
  if (source.prompt) {
    if (!last) yield* exportPrompt(db, source.prompt, start, query, run)
    return
  }
  for await (const prompts of readPrompts(db, source.organisationId, last?.id)) {
    for (const prompt of prompts) {
      yield* exportPrompt(db, prompt, start, query, run)
      // The answer begins with the first step, since thousands of prompts may have no signals.
      yield { text: '', signals: 0 }
    }
  }
}

const laterOf = (start: ExportPosition, last: ExportPosition): ExportPosition =>
  start.at && last.at && start.at > last.at ? start : last

async function requireSignal(db: Db, { organisationId, prompt }: ExportSource, id: number) {
  const found = await findSignal(db.sql, organisationId, id)
  if (found && (!prompt || prompt.id === found.id)) return found
  throw invalidQuery({
    path: 'after',
    message: 'must be the id of a signal of this export; of an earlier one, if it was erased',
  })
}

async function* exportPrompt(
  db: Db,
  prompt: PromptIds,
  start: ExportPosition,
  query: ExportQuery,
  run: RunStep,
): AsyncGenerator<ExportStep> {
  let rows = firstRows
  for (let after = start; ; ) {
    const step = await run(() => selectLines(db.sql, prompt, after, query, rows, maxBytes))
    const { lines, exported, lookedAt, lastTime, lastId } = step
    if (lookedAt === 0) return
    // A step without a line is yielded too, so that an export that has to look for a rare value is known to be under way.
    yield { text: lines ?? '', signals: exported }
    after = { at: lastTime, id: lastId }
    rows = Math.min(Math.max(2 * lookedAt, minRows), maxRows)
  }
}
