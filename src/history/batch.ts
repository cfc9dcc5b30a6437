import { operator, recordAudit } from '../audit/record.ts'
import type { AuditEvent } from '../audit/schema.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { invalid, ServiceError } from '../errors.ts'
import { earlierOf, parseInstant } from '../lib/times.ts'
import type { Prompt } from '../prompts/find.ts'
import { markFilesSeen } from '../prompts/link.ts'
import { hasLiveAction, type KnownEntry, type ReportedEntry } from './identity.ts'
import { type EntryOutcome, type Reconciliation, reconcile } from './reconcile.ts'
import { expectedInstant, type PromptEntry, parseReported, readKnown, recordReported } from './record.ts'
import { isStorableText, maxTextBytes, showTitledEntry } from './schema.ts'
import type { HistoryBatch } from './schema_batch.ts'
import { lockStoringTexts } from './store.ts'

/** What became of each entry, and the positions of those whose text is not stored. */
export type RecordedHistory = { outcomes: EntryOutcome[]; without_text?: number[] }

/**
 * Records what was read in a repository, all or nothing, and says what became of each entry. `findPrompt` rejects for a
 * prompt of another organisation. At the deadline of `actor` the client gets an error, and nothing is recorded.
 */
export async function recordHistoryBatch(
  db: Db,
  clock: Clock,
  organisationId: number,
  { entries, files = [], with_texts: withTexts = false, dry_run: isDryRun = false }: HistoryBatch,
  findPrompt: (publicId: string) => Prompt | Promise<Prompt>,
  actor = operator,
): Promise<RecordedHistory> {
  const ids = [...new Set([...entries, ...files].map((item) => item.prompt_id))]
  const prompts = new Map(await Promise.all(ids.map(async (id) => [id, (await findPrompt(id)).id] as const)))
  const reported = entries.map(({ prompt_id, covers = [], text, ...entry }, index) => {
    const parsed = parseAt(index, { prompt: prompts.get(prompt_id) as number, entry, covers }, clock)
    return { ...parsed, text: text === undefined ? undefined : requireText(text, index) }
  })
  const seen = files.map(({ prompt_id, state, seen_at }, index) => {
    // With the time of a clock that is ahead, later reports would be ignored as outdated.
    const at = earlierOf(parseSeenAt(seen_at, index), clock.now())
    return { promptId: prompts.get(prompt_id) as number, state, movedTo: null, at }
  })
  const needsTexts = withTexts || reported.some(({ text }) => text !== undefined)
  const deadline = actor.request?.deadline
  const permitRequest = { tenant: organisationId, key: `history of ${organisationId}`, deadline }
  const { outcomes, stored } = await db.transaction(async (sql) => {
    if (needsTexts) await requireStoringTexts(sql, organisationId)
    if (isDryRun) return reconcile(reported, await readKnown(sql, organisationId, reported))
    const otherPrompts = seen.map(({ promptId }) => promptId)
    const options = { otherPrompts, publicIds: [...prompts.keys()] }
    const result = await recordReported(sql, clock, organisationId, reported, options)
    const events = auditEventsOf(result, organisationId, prompts)
    if (events.length > 0) await recordAudit(sql, clock, actor, ...events)
    await markFilesSeen(sql, organisationId, seen)
    return result
  }, permitRequest)
  const lacksText = stored.map((entry) => entry !== undefined && hasLiveAction(entry) && !entry.has_text)
  return { outcomes, ...(withTexts && { without_text: [...lacksText.keys()].filter((index) => lacksText[index]) }) }
}

async function requireStoringTexts(sql: Sql, organisationId: number): Promise<void> {
  const { isOn, org } = await lockStoringTexts(sql, organisationId)
  if (isOn) return
  const command = `prompt-signals orgs update ${org} --store-text on`
  throw invalid(`The organisation does not store texts. Turn it on: ${command}`, [])
}

/** The entries that a batch changed or removed, as they were before. */
function auditEventsOf(
  { updates, deletes }: Pick<Reconciliation, 'updates' | 'deletes'>,
  organisationId: number,
  prompts: Map<string, number>,
): AuditEvent[] {
  const publicIds = new Map([...prompts].map(([publicId, id]) => [id, publicId]))
  const subjectOf = ({ prompt_id }: KnownEntry) => publicIds.get(prompt_id) as string
  const changed = updates.filter(({ isVisible }) => isVisible)
  return [
    ...changed.map(({ from, to }): AuditEvent => {
      const details = { entry: showTitledEntry(from), changed_to: showTitledEntry(to) }
      return { organisationId, action: 'history.changed', subject: subjectOf(from), details }
    }),
    ...deletes.map((entry): AuditEvent => {
      const details = { entry: showTitledEntry(entry) }
      return { organisationId, action: 'history.removed', subject: subjectOf(entry), details }
    }),
  ]
}

function requireText(text: string, index: number): string {
  if (isStorableText(text)) return text
  const message = `must be well-formed text without NUL, of at most ${maxTextBytes / 1024} KiB`
  throw invalid('The batch is not valid.', [{ path: `/entries/${index}/text`, message }])
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
