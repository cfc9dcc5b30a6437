import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { invalid, ServiceError } from '../errors.ts'
import { earlierOf, parseInstant } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import type { Prompt } from '../prompts/find.ts'
import { markFilesSeen } from '../prompts/link.ts'
import { expectedInstant, type Outcome, parseEntry, recordEntries } from './record.ts'
import { HistoryBatch } from './schema.ts'
import { recordTexts, requireTexts } from './texts.ts'

const validate = createValidator(HistoryBatch, 'The batch')

/** What became of each entry, and the hashes of texts that entries name and that are not stored. */
export type BatchResult = { outcomes: Outcome[]; missing_texts?: string[] }

/** Thrown to roll back a dry run. */
class DryRun extends Error {}

/**
 * Records what was read in a repository, all or nothing, and says what became of each entry. `findPrompt` rejects for a
 * prompt of another organisation. At `deadline` the client gets an error, and nothing is recorded.
 */
export async function recordHistoryBatch(
  db: Db,
  clock: Clock,
  organisationId: number,
  given: unknown,
  findPrompt: (publicId: string) => Promise<Prompt>,
  deadline?: number,
): Promise<BatchResult> {
  const {
    entries,
    files = [],
    texts: givenTexts = [],
    live_branch: liveBranch,
    dry_run: isDryRun = false,
  } = validate(given)
  const texts = requireTexts(givenTexts)
  const ids = [...new Set([...entries, ...files].map((item) => item.prompt_id))]
  const prompts = new Map(await Promise.all(ids.map(async (id) => [id, (await findPrompt(id)).id] as const)))
  const refs = entries.flatMap(({ prompt_id, commit_sha, text_hash }) =>
    text_hash === undefined ? [] : { prompt_id: prompts.get(prompt_id) as number, commit_sha, text_hash },
  )
  const toRecord = entries.map(({ prompt_id, covers = [], text_hash: _, ...entry }, index) => {
    requireValid(entry, clock, index)
    return { prompt: prompts.get(prompt_id) as number, entry, covers }
  })
  const seen = files.map(({ prompt_id, state, seen_at }, index) => {
    // With the time of a clock that is ahead, later reports would be ignored as outdated.
    const at = earlierOf(parseSeenAt(seen_at, index), clock.now())
    return { promptId: prompts.get(prompt_id) as number, state, movedTo: null, at }
  })
  const result: BatchResult = { outcomes: [] }
  const record = db.transaction(
    async (sql) => {
      result.outcomes = await recordEntries(sql, clock, toRecord, 'git', {
        otherPrompts: [...prompts.values()],
        publicIds: [...prompts.keys()],
        liveBranch,
      })
      await markFilesSeen(sql, seen)
      if (refs.length > 0) result.missing_texts = await recordTexts(sql, organisationId, refs, texts)
      if (isDryRun) throw new DryRun()
    },
    { tenant: organisationId, deadline },
  )
  await record.catch((error) => {
    if (!(error instanceof DryRun)) throw error
  })
  return result
}

function parseSeenAt(text: string, index: number): Date {
  const instant = parseInstant(text)
  if (instant) return instant
  throw invalid('The batch is not valid.', [{ path: `/files/${index}/seen_at`, message: expectedInstant }])
}

/** Rejects an invalid entry with an error that names its place in the batch. */
function requireValid(entry: unknown, clock: Clock, index: number): void {
  try {
    parseEntry(entry, clock)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const details = error.context.details?.map(({ path, message }) => ({ path: `/entries/${index}${path}`, message }))
    throw new ServiceError(error.code, 'The batch is not valid.', details ? { details } : {})
  }
}
