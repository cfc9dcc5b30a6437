import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { invalid, ServiceError } from '../errors.ts'
import { cutSteps } from '../lib/steps.ts'
import { earlierOf, parseInstant } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import type { Prompt } from '../prompts/find.ts'
import { type FileSeen, markFilesSeen } from '../prompts/link.ts'
import { expectedInstant, type Outcome, type PromptEntry, parseEntry, recordEntries } from './record.ts'
import { HistoryBatch } from './schema.ts'
import { findMissingTexts, recordTexts, requireTexts } from './texts.ts'

const validate = createValidator(HistoryBatch, 'The batch')

/** What became of each entry, and the hashes of texts that entries name and that are not stored. */
export type BatchResult = { outcomes: Outcome[]; missing_texts?: string[] }

/**
 * Records what was read in a repository, and says what became of each entry: all or nothing or, on the embedded engine, in
 * short steps. `findPrompt` rejects for a prompt of another organisation. At `deadline` the client gets an error, and
 * nothing further is recorded.
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
  const toRecord = entries.map(({ prompt_id, covers = [], text_hash, ...entry }, index) => {
    requireValid(entry, clock, index)
    return { prompt: prompts.get(prompt_id) as number, entry, covers, text_hash }
  })
  const seen = files.map(({ prompt_id, state, seen_at }, index) => {
    // With the time of a clock that is ahead, later reports would be ignored as outdated.
    const at = earlierOf(parseSeenAt(seen_at, index), clock.now())
    return { promptId: prompts.get(prompt_id) as number, state, movedTo: null, at }
  })
  // A dry run is short, because it only reads, and cannot see what an earlier step would have recorded.
  const isInSteps = db.isEmbedded && !isDryRun
  const steps = isInSteps ? cutBatch(toRecord, seen) : [{ entries: toRecord, files: seen }]
  const hasTexts = toRecord.some(({ text_hash }) => text_hash !== undefined)
  const missing = new Set<string>()
  const outcomes: Outcome[] = []
  for (const step of steps) {
    await db.transaction(
      async (sql) => {
        const otherPrompts = step.files.map(({ promptId }) => promptId)
        const options = { otherPrompts, publicIds: [...prompts.keys()], liveBranch, isDryRun }
        outcomes.push(...(await recordEntries(sql, clock, organisationId, step.entries, 'git', options)))
        if (!isDryRun) await markFilesSeen(sql, organisationId, step.files)
        const refs = hasTexts ? step.entries.flatMap(toTextRef) : []
        // Also without any in this step: an organisation that stores no texts must learn it before anything is recorded.
        const find = isDryRun ? findMissingTexts : recordTexts
        if (hasTexts) for (const hash of await find(sql, organisationId, refs, texts)) missing.add(hash)
      },
      // One at a time: on the embedded engine everybody waits for each of them.
      { tenant: organisationId, key: `history of ${organisationId}`, deadline },
    )
  }
  return { outcomes, ...(hasTexts ? { missing_texts: [...missing] } : {}) }
}

type EntryOfBatch = PromptEntry & { covers: string[]; text_hash: string | undefined }
type Step = { entries: EntryOfBatch[]; files: FileSeen[] }

/** The embedded engine does nothing else during a step, so each is short. */
const maxStepCommits = 100

const cutBatch = (entries: EntryOfBatch[], files: FileSeen[]): Step[] => [
  ...cutSteps(entries, ({ covers }) => 1 + covers.length, maxStepCommits).map((step) => ({ entries: step, files: [] })),
  ...(files.length > 0 ? [{ entries: [], files }] : []),
]

const toTextRef = ({ prompt, entry: { commit_sha }, text_hash }: EntryOfBatch) =>
  text_hash === undefined ? [] : { prompt_id: prompt, commit_sha, text_hash }

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
