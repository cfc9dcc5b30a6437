// Writes what was decided about histories, decides which entries are changes now, and announces the new ones.
import { github, recordAudit } from '../audit/record.ts'
import type { AuditEvent } from '../audit/schema.ts'
import type { Clock } from '../clock.ts'
import type { Sql } from '../db/client.ts'
import { describeLive } from '../impact/sentence.ts'
import { copyVerdicts, emitEvent, forgetChecks } from '../webhooks/events.ts'
import { findNews, findSuccessor, findWrongChanges, type PlacedEntry } from './changes.ts'
import { type EntryToRecord, hasLiveAction, type Spellings } from './identity.ts'
import type { Reconciliation } from './reconcile.ts'
import { liveActions, showTitledEntry } from './schema.ts'
import {
  type CountedPlace,
  countPlaces,
  flipChanges,
  insertEntries,
  type Surroundings,
  selectNewestChanges,
  selectPlacedEntries,
  setLiveBranch,
  writeKnown,
} from './store_write.ts'

/** An entry that was written just now. */
type WrittenEntry = EntryToRecord & PlacedEntry

/** The new entries of a history. `isWatched` if its organisation has an endpoint for events. */
export type Added = { promptId: number; entries: WrittenEntry[]; isWatched: boolean }

/** Writes what was decided, and returns the new entries. The caller has locked the histories since it read them. */
export async function writeReconciliation(
  sql: Sql,
  organisationId: number,
  decided: Pick<Reconciliation, 'inserts' | 'updates' | 'deletes' | 'mergedCommits'>,
): Promise<Added[]> {
  const { inserts, deletes } = decided
  await writeKnown(sql, organisationId, decided)
  const visible = decided.updates.filter(({ isVisible }) => isVisible)
  const removed = [...deletes, ...visible.map(({ from }) => from)]
  const moved = visible.map(({ to }) => to)
  const places: CountedPlace[] = [
    ...removed.map(({ prompt_id, created_at, id }) => ({ prompt_id, created_at, id, added: -1 as const })),
    ...moved.map(({ prompt_id, created_at, id }) => ({ prompt_id, created_at, id, added: 1 as const })),
  ]
  const surroundings = places.length > 0 ? await countPlaces(sql, organisationId, places, liveActions) : []
  if (inserts.length > 0) return addEntries(sql, organisationId, inserts, null, { surroundings, moved })
  await correctChanges(sql, organisationId, surroundings, moved, [])
  return []
}

/** Adds entries, with `unless` under its conditions. Entries of the same transaction may have moved before. */
export async function addEntries(
  sql: Sql,
  organisationId: number,
  given: EntryToRecord[],
  unless: (Spellings & { publicId: string }) | null,
  { surroundings, moved }: { surroundings: Surroundings[]; moved: WrittenEntry[] } = { surroundings: [], moved: [] },
): Promise<Added[]> {
  // Right for most entries; correctChanges knows what was live before the others.
  const entries = given.map((entry) => ({ ...entry, is_change: hasLiveAction(entry) }))
  const inserted = await insertEntries(sql, organisationId, entries, liveActions, unless)
  const added = inserted.map(({ promptId, ids, isWatched }): Added => {
    const own = entries.filter(({ prompt_id }) => prompt_id === promptId)
    return { promptId, isWatched, entries: own.map((entry, index) => ({ ...entry, id: ids[index] as number })) }
  })
  const newEntries = added.flatMap((one) => one.entries)
  await correctChanges(sql, organisationId, [...surroundings, ...inserted], moved, newEntries)
  return added
}

/**
 * Decides whether written entries, and those live after them, are changes. The verdicts of a change stay with it when an
 * earlier entry of its commit takes its place.
 */
async function correctChanges(
  sql: Sql,
  organisationId: number,
  surroundings: Surroundings[],
  moved: WrittenEntry[],
  added: WrittenEntry[],
): Promise<void> {
  const addedIds = new Set(added.map(({ id }) => id))
  const prompts = [...Map.groupBy(surroundings, ({ promptId }) => promptId)].map(([promptId, ofPrompt]) => {
    const near = ofPrompt.flatMap(({ around }) =>
      around.near.map((row) => ({ ...row, created_at: new Date(row.created_at) })),
    )
    const own = [...moved, ...added].filter(({ prompt_id }) => prompt_id === promptId)
    const decided = new Set([...near.filter(({ is_after }) => is_after), ...own].map(({ id }) => id))
    const entries: PlacedEntry[] = [...new Map([...near, ...own].map((entry) => [entry.id, entry])).values()]
    const wrong = findWrongChanges(entries, ofPrompt[0]?.around.live_branch ?? null, decided)
    return { promptId, entries, wrong, old: wrong.filter(({ id }) => !addedIds.has(id)) }
  })
  await flip(
    sql,
    organisationId,
    prompts.flatMap(({ wrong }) => wrong),
  )
  const successions = prompts.flatMap(({ entries, old }) =>
    old.flatMap((from) => {
      const to = from.is_change ? undefined : findSuccessor(entries, from)
      return to ? { from: from.id, to } : []
    }),
  )
  for (const { to } of successions) to.isTakenOver = true
  if (successions.length > 0) await copyVerdicts(sql, organisationId, successions)
  const isCorrected = (entry: PlacedEntry) => entry.is_change && !entry.isTakenOver
  const corrected = prompts.filter(({ old }) => old.some(isCorrected)).map(({ promptId }) => promptId)
  if (corrected.length > 0) await forgetChecks(sql, organisationId, corrected)
}

async function flip(sql: Sql, organisationId: number, wrong: PlacedEntry[]): Promise<void> {
  if (wrong.length === 0) return
  const ids = wrong.map(({ id }) => id)
  await flipChanges(sql, organisationId, ids)
  for (const entry of wrong) entry.is_change = !entry.is_change
}

/** Gives prompts without a live branch the default branch of their repository on GitHub. */
export async function startLiveBranch(
  sql: Sql,
  clock: Clock,
  organisationId: number,
  promptIds: number[],
  branch: string,
): Promise<void> {
  const changed = await setLiveBranch(sql, organisationId, promptIds, branch)
  if (changed.length === 0) return
  const ids = changed.map(({ id }) => id)
  await decideChanges(sql, organisationId, ids)
  const events = changed.map(({ publicId: subject }): AuditEvent => {
    return { organisationId, action: 'prompt.updated', subject, details: { live_branch: branch } }
  })
  await recordAudit(sql, clock, github, ...events)
}

/** Decides again which entries of whole histories are changes, after the live branch was changed. */
export async function decideChanges(sql: Sql, organisationId: number, promptIds: number[]): Promise<void> {
  const entries = await selectPlacedEntries(sql, organisationId, promptIds)
  const wrong = [...Map.groupBy(entries, ({ prompt_id }) => prompt_id).values()].flatMap((ofPrompt) =>
    findWrongChanges(ofPrompt, ofPrompt[0]?.live_branch ?? null),
  )
  await flip(sql, organisationId, wrong)
  await forgetChecks(sql, organisationId, promptIds)
}

/** Writes the events for the new entries that went live, at most one per prompt, in the caller's transaction. */
export async function announceChanges(sql: Sql, organisationId: number, added: Added[], now: Date): Promise<void> {
  const watched = added.filter(({ entries, isWatched }) => isWatched && entries.some(({ is_change }) => is_change))
  if (watched.length === 0) return
  const promptIds = watched.map(({ promptId }) => promptId)
  for (const { promptId, newest, ...prompt } of await selectNewestChanges(sql, organisationId, promptIds)) {
    const entries = watched.flatMap((one) => (one.promptId === promptId ? one.entries : []))
    const news = findNews(entries, newest, now)
    if (!news) continue
    const change = showTitledEntry(news)
    const data = { prompt, change, sentence: describeLive(change) }
    const dedupKey = `change.live ${news.id}`
    await emitEvent(sql, { organisationId, type: 'change.live', dedupKey, promptId: prompt.id, data, now })
  }
}
