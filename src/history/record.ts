import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { classifyError } from '../db/errors.ts'
import { notFound, unavailable } from '../errors.ts'
import { createGroupCommit } from '../lib/group_commit.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import { type Prompt, requirePrompt } from '../prompts/find.ts'
import { parseEntry } from './entry.ts'
import { showEntry } from './read.ts'
import type { HistoryEntry, NewHistoryEntry } from './schema.ts'
import { type EntryToRecord, insertEntries, lockHistories, type RecordedRow, reconcileEntries } from './store_write.ts'

type Recorded = { entry: HistoryEntry; isNew: boolean }

export type HistoryRecorder = {
  /**
   * Resolves once the entry is committed, or found to be in the history already. What cannot be written before `deadline`,
   * by the clock of `performance.now()`, is not written later: its caller has been answered with an error.
   */
  record(prompt: Prompt, given: unknown, deadline: number): Promise<Recorded>
  /** Waits until everything under way has been written. */
  drain(): Promise<void>
}

/** An entry for the history of one prompt. */
export type PromptEntry = {
  /** The id of the prompt's row; in the plan of a sync, the position of the prompt. */
  prompt: number
  entry: NewHistoryEntry
  /** The commits that a merge brought to its branch, beside its own; they are not deployed by themselves. */
  covers?: string[]
  /** How often the pull request had been reopened, for one that is closed again at the same commit. */
  reopenings?: number
}

type Write = { entry: EntryToRecord; organisationId: number; deadline: number }

/** How many entries may wait to be written, and how many of them may be of one organisation. */
const [maxQueued, maxQueuedPerTenant] = [2_000, 1_000]
/** The part of a caller's time that is left for the last attempt. */
const writeMs = 1_000
/** An attempt is put off when it gets no permit within this time. */
const permitPatienceMs = 500

/**
 * Commits entries that arrive together in one statement. When one of their prompts is locked by another transaction,
 * each prompt is tried separately until its entries are written or given up.
 */
export function createHistoryRecorder(db: Db, clock: Clock): HistoryRecorder {
  const limitQueued = createSemaphore({
    permits: maxQueued,
    permitsPerTenant: maxQueuedPerTenant,
    maxWaiting: 0,
    rejectWith: unavailable,
  })
  // Attempts that wait for locked prompts must not take all connections, nor may one organisation take all permits.
  const noPermit = new Error('no permit in time')
  const limitWrites = createSemaphore({
    permits: 4,
    permitsPerTenant: 2,
    maxWaiting: maxQueued,
    patienceMs: permitPatienceMs,
    rejectWith: () => noPermit,
  })
  const writes = createGroupCommit<Write, RecordedRow | undefined>({
    write(writes) {
      const organisationId = writes[0]?.organisationId
      const isOfOne = writes.every((write) => write.organisationId === organisationId)
      const entries = writes.map(({ entry }) => entry)
      return limitWrites(() => insertEntries(db.sql, entries), { tenant: isOfOne ? organisationId : undefined })
    },
    classifyError: (error) => (error === noPermit ? 'lock_timeout' : classifyError(error)),
    groupOf: ({ entry }) => entry.prompt_id,
    rejectWith: unavailable,
    maxBatch: 200,
    maxQueued,
    weightOf: () => 0,
    maxBatchWeight: 1,
    lingerMs: 0,
    deadlineOf: ({ deadline }) => deadline - writeMs,
  })

  return {
    async record({ id, organisationId }, given, deadline) {
      const entry = { ...parseEntry(given, clock), prompt_id: id }
      const recorded = await limitQueued(() => writes.add({ entry, organisationId, deadline }), {
        tenant: organisationId,
      })
      // The prompt is missing only after a failover that lost it between the look-up and now.
      if (!recorded) throw notFound()
      const { is_new: isNew, ...row } = recorded
      return { entry: showEntry(row), isNew }
    },
    drain: writes.drain,
  }
}

/** Records an entry for an operator, who may name a prompt of any organisation and waits for as long as it takes. */
export async function recordHistory(db: Db, clock: Clock, prompt: string, given: unknown): Promise<HistoryEntry> {
  const { id } = await requirePrompt(db.sql, prompt)
  const entry = { ...parseEntry(given, clock), prompt_id: id }
  const [row] = await db.transaction(async (sql) => {
    await lockHistories(sql, [entry])
    return insertEntries(sql, [entry])
  })
  return showEntry(row as RecordedRow)
}

/** What became of an entry: a commit that is covered has no entry of its own, because it belongs to a merge. */
export type Outcome = 'added' | 'changed' | 'known' | 'covered'

/** Where an entry was read: in a clone, or in a delivery of GitHub's. */
type Source = 'git' | 'github'

/**
 * Records entries of one source within the caller's transaction, and says what became of each. The histories are the same
 * in whichever order two sources bring the same changes; docs/git.md has the rule.
 */
export async function recordEntries(sql: Sql, clock: Clock, given: PromptEntry[], source: Source): Promise<Outcome[]> {
  if (given.length === 0) return []
  const entries = given.map(({ prompt, entry, covers = [], reopenings = 0 }) => ({
    ...parseEntry(entry, clock),
    prompt_id: prompt,
    reopenings,
    in_git: source === 'git',
    on_github: source === 'github',
    covers,
  }))
  await lockHistories(sql, entries)
  const { changed, present, covered } = await reconcileEntries(sql, entries)
  const toInsert = entries.filter((entry) => !covered.has(entry) && !present.has(entry))
  const rows = toInsert.length > 0 ? await insertEntries(sql, toInsert) : []
  const added = new Set(toInsert.filter((_, index) => rows[index]?.is_new))
  return entries.map((entry) => {
    if (covered.has(entry)) return 'covered'
    if (added.has(entry)) return 'added'
    return changed.has(entry) ? 'changed' : 'known'
  })
}

export const countChanges = (outcomes: Outcome[]): number =>
  outcomes.filter((outcome) => outcome === 'added' || outcome === 'changed').length
