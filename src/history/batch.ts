import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { invalid, ServiceError } from '../errors.ts'
import { cutSteps } from '../lib/steps.ts'
import { earlierOf, parseInstant } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import type { Prompt } from '../prompts/find.ts'
import { type FileSeen, markFilesSeen } from '../prompts/link.ts'
import { hasLiveAction, type ReportedEntry } from './identity.ts'
import { type Outcome, reconcile } from './reconcile.ts'
import { expectedInstant, type PromptEntry, parseReported, readKnown, recordEntries } from './record.ts'
import { HistoryBatch } from './schema.ts'
import { findMissingTexts, recordTexts, requireTexts } from './texts.ts'

const validate = createValidator(HistoryBatch, 'The batch')

/** What became of each entry, and the hashes that entries name of texts that are not stored. */
export type BatchResult = { outcomes: Outcome[]; missing_texts?: string[] }

/**
 * Records what was read in a repository, and says what became of each entry. It records all or nothing, but in short steps
 * on the embedded engine. `findPrompt` rejects for a prompt of another organisation. At `deadline` the client gets an
 * error, and nothing further is recorded.
 */
export async function recordHistoryBatch(
  db: Db,
  clock: Clock,
  organisationId: number,
  given: unknown,
  findPrompt: (publicId: string) => Prompt | Promise<Prompt>,
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
    const given = { prompt: prompts.get(prompt_id) as number, entry, covers }
    return { reported: parseAt(index, given, clock), textHash: text_hash }
  })
  const seen = files.map(({ prompt_id, state, seen_at }, index) => {
    // With the time of a clock that is ahead, later reports would be ignored as outdated.
    const at = earlierOf(parseSeenAt(seen_at, index), clock.now())
    return { promptId: prompts.get(prompt_id) as number, state, movedTo: null, at }
  })
  const refs = toRecord.flatMap(toTextRef)
  const hasTexts = refs.some(({ text_hash }) => text_hash !== null)
  const missing = new Set<string>()
  const outcomes: Outcome[] = []
  // One batch of an organisation at a time, because on the embedded engine everybody waits for it.
  const permitRequest = { tenant: organisationId, key: `history of ${organisationId}`, deadline }
  if (isDryRun) {
    const all = toRecord.map(({ reported }) => reported)
    const known = await db.transaction(async (sql) => {
      if (hasTexts) for (const hash of await findMissingTexts(sql, organisationId, refs, texts)) missing.add(hash)
      return readKnown(sql, organisationId, all)
    }, permitRequest)
    outcomes.push(...reconcile(all, known).outcomes)
  } else {
    const steps = db.isEmbedded ? cutBatch(toRecord, seen) : [{ entries: toRecord, files: seen }]
    for (const step of steps) {
      await db.transaction(async (sql) => {
        const otherPrompts = step.files.map(({ promptId }) => promptId)
        const options = { otherPrompts, publicIds: [...prompts.keys()], liveBranch }
        const reported = step.entries.map((entry) => entry.reported)
        outcomes.push(...(await recordEntries(sql, clock, organisationId, reported, options)))
        await markFilesSeen(sql, organisationId, step.files)
        // Together, because a merge gets the last text. Called in each step: if the organisation stores none, the first fails.
        const linked = step === steps.at(-1) ? refs : []
        if (hasTexts) for (const hash of await recordTexts(sql, organisationId, linked, texts)) missing.add(hash)
      }, permitRequest)
    }
  }
  return { outcomes, ...(hasTexts ? { missing_texts: [...missing] } : {}) }
}

type EntryOfBatch = { reported: ReportedEntry; textHash: string | undefined }
type Step = { entries: EntryOfBatch[]; files: FileSeen[] }

/** The embedded engine does nothing else during a step, so each is short. */
const maxStepCommits = 50

const cutBatch = (entries: EntryOfBatch[], files: FileSeen[]): Step[] => [
  ...cutSteps(entries, ({ reported }) => 1 + reported.covers.length, maxStepCommits).map((step) => ({
    entries: step,
    files: [],
  })),
  ...(files.length > 0 ? [{ entries: [], files }] : []),
]

/** Also for a change without a text, such as a removal: a merge must not get the text of an earlier one. */
const toTextRef = ({ reported, textHash }: EntryOfBatch) => {
  const { prompt_id, branch_name, commit_sha } = reported
  const ref = { prompt_id, branch_name, commit_sha, text_hash: textHash ?? null }
  return textHash || hasLiveAction(reported) ? ref : []
}

function parseSeenAt(text: string, index: number): Date {
  const instant = parseInstant(text)
  if (instant) return instant
  throw invalid('The batch is not valid.', [{ path: `/files/${index}/seen_at`, message: expectedInstant }])
}

/** Rejects an invalid entry with an error that names its place in the batch. */
function parseAt(index: number, given: PromptEntry, clock: Clock): ReportedEntry {
  try {
    return parseReported(given, 'git', clock)
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    const details = error.context.details?.map(({ path, message }) => ({ path: `/entries/${index}${path}`, message }))
    throw new ServiceError(error.code, 'The batch is not valid.', details ? { details } : {})
  }
}
