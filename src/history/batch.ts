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
  const reported = entries.map(({ prompt_id, covers = [], text_hash: _, ...entry }, index) =>
    parseAt(index, { prompt: prompts.get(prompt_id) as number, entry, covers }, clock),
  )
  const seen = files.map(({ prompt_id, state, seen_at }, index) => {
    // With the time of a clock that is ahead, later reports would be ignored as outdated.
    const at = earlierOf(parseSeenAt(seen_at, index), clock.now())
    return { promptId: prompts.get(prompt_id) as number, state, movedTo: null, at }
  })
  // Also for a change without a text, such as a removal: a merge must not get the text of an earlier one.
  const refs = reported.flatMap((entry, index) => {
    const { prompt_id, branch_name, commit_sha } = entry
    const text_hash = entries[index]?.text_hash ?? null
    return text_hash || hasLiveAction(entry) ? { prompt_id, branch_name, commit_sha, text_hash } : []
  })
  const hasTexts = refs.some(({ text_hash }) => text_hash !== null)
  const missing = new Set<string>()
  const outcomes: Outcome[] = []
  // One batch of an organisation at a time, because on the embedded engine everybody waits for it.
  const permitRequest = { tenant: organisationId, key: `history of ${organisationId}`, deadline }
  if (isDryRun) {
    const known = await db.transaction(async (sql) => {
      if (hasTexts) for (const hash of await findMissingTexts(sql, organisationId, refs, texts)) missing.add(hash)
      return readKnown(sql, organisationId, reported)
    }, permitRequest)
    outcomes.push(...reconcile(reported, known).outcomes)
  } else {
    const steps = db.isEmbedded ? cutBatch(reported, seen) : [{ entries: reported, files: seen }]
    for (const step of steps) {
      await db.transaction(async (sql) => {
        const otherPrompts = step.files.map(({ promptId }) => promptId)
        const options = { otherPrompts, publicIds: [...prompts.keys()], liveBranch }
        outcomes.push(...(await recordEntries(sql, clock, organisationId, step.entries, options)))
        await markFilesSeen(sql, organisationId, step.files)
        // Together, because a merge gets the last text. Called in each step: if the organisation stores none, the first fails.
        const linked = step === steps.at(-1) ? refs : []
        if (hasTexts) for (const hash of await recordTexts(sql, organisationId, linked, texts)) missing.add(hash)
      }, permitRequest)
    }
  }
  return { outcomes, ...(hasTexts ? { missing_texts: [...missing] } : {}) }
}

type Step = { entries: ReportedEntry[]; files: FileSeen[] }

/** The embedded engine does nothing else during a step, so each is short. */
const maxStepCommits = 50

const cutBatch = (entries: ReportedEntry[], files: FileSeen[]): Step[] => [
  ...cutSteps(entries, ({ covers }) => 1 + covers.length, maxStepCommits).map((step) => ({ entries: step, files: [] })),
  ...(files.length > 0 ? [{ entries: [], files }] : []),
]

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
