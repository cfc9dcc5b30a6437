import type { Db, Sql } from '../db/client.ts'
import { canBeginHash } from '../history/identity.ts'
import { type EntryRow, showTitledEntry } from '../history/schema.ts'
import { offsetOf } from '../lib/numbered_page.ts'
import { invalidQuery } from '../lib/params.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import {
  attribute,
  boundsOf,
  type ChangeCounts,
  daysOf,
  type ListedChange,
  splitBounds,
  windowsOf,
} from './attribute.ts'
import { compareWindows, effectiveCounts, verdictFor } from './compare.ts'
import { differenceOf, rateOf, totalOf } from './rate.ts'
import { defaultMargin, type Impact, type ImpactQuery, type Pair } from './schema.ts'
import { type ChangeLists, selectChanges, selectEntries, selectSignalCounts } from './store.ts'

/** A page of changes, newest first, each compared with the one before it; or two changes, head first. */
type ImpactPage = { totalCount: number; data: Impact[] }

/** Reads in one snapshot, so that every signal is counted once. */
export const readSnapshot = <T>(db: Db, rollup: SignalRollup, prompt: OwnedPrompt, read: (sql: Sql) => Promise<T>) =>
  db.heavyRead(prompt.organisationId, async () => {
    await rollup.catchUp(prompt)
    return db.transaction(read, { tenant: prompt.organisationId }, 'repeatable read')
  })

export async function readImpact(sql: Sql, prompt: OwnedPrompt, query: ImpactQuery): Promise<ImpactPage> {
  const { organisationId } = prompt
  const { pair, margin } = query
  const lists = await selectChanges(sql, organisationId, [prompt.id])
  if (pair) {
    const data = await readImpacts(sql, organisationId, lists, [pair.head, pair.base], margin, pair)
    const path = (['base', 'head'] as const).find((name) => data.every(({ change }) => change.id !== pair[name]))
    const message = 'must be the id of a change of this prompt, as its impact lists them'
    if (path) throw invalidQuery({ path, message })
    return { totalCount: 2, data }
  }
  const matching = (lists.get(prompt.id) ?? []).filter((change) => isWanted(change, query)).toReversed()
  const offset = offsetOf(query)
  const ids = matching.slice(offset, offset + query.limit).map(({ id }) => id)
  return { totalCount: matching.length, data: await readImpacts(sql, organisationId, lists, ids, margin) }
}

const isWanted = (
  { action, branch_name, created_at }: ListedChange,
  { action: actions, branch, since, until }: ImpactQuery,
): boolean =>
  (!actions || actions.includes(action)) &&
  (branch === null || branch === branch_name) &&
  (!since || created_at >= since) &&
  (!until || created_at <= until)

export type DecidedImpact = Impact & { verdict: 'better' | 'worse' | 'same' }

/**
 * The decided ones of the live change of each prompt and the newest that went live from `since` on, at most `limit` of each,
 * compared with the changes before them. For a transaction with one snapshot.
 */
export async function readDecidedImpacts(
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  since: Date,
  limit: number,
): Promise<{ promptId: number; impact: DecidedImpact }[]> {
  const lists = await selectChanges(sql, organisationId, promptIds)
  const watched = [...lists.values()].flatMap((all) => {
    const compared = all.slice(1).slice(-limit)
    return compared.filter((change) => change === all.at(-1) || change.created_at >= since).map(({ id }) => id)
  })
  const counts = await countSignals(sql, organisationId, lists, watched)
  const decided = watched.filter((id) => {
    const own = counts.get(id) as ChangeCounts
    const before = findCounts(counts, own.window.before_id) as ChangeCounts
    const { base, head } = effectiveCounts(daysOf(before), daysOf(own))
    // Most are undecided, and their forecast would take far more time than the interval.
    return verdictFor(differenceOf(base, head), defaultMargin) !== 'undecided'
  })
  const entries = decided.length > 0 ? await selectEntries(sql, organisationId, decided) : []
  return entries.map((entry) => {
    const own = counts.get(entry.id) as ChangeCounts
    const { prompt_id: promptId, before_id } = own.window
    return { promptId, impact: showImpact(entry, own, findCounts(counts, before_id), defaultMargin) as DecidedImpact }
  })
}

const findCounts = (counts: Map<number, ChangeCounts>, id: number | null): ChangeCounts | null =>
  (id !== null && counts.get(id)) || null

/** The signals of these changes and of the ones before them. Leaves out ids that are not in the lists. */
export async function countSignals(sql: Sql, organisationId: number, lists: ChangeLists, ids: number[]) {
  const wanted = new Set(ids)
  const ofPrompts = [...lists].flatMap(([id, all]) => {
    const windows = windowsOf(all, wanted)
    const commits = [...new Set(all.map(({ commit_key }) => commit_key))]
    return windows.length > 0 ? { id, windows, commits } : []
  })
  if (ofPrompts.length === 0) return new Map<number, ChangeCounts>()
  const given = ofPrompts.map(({ id, windows, commits }) => {
    const shown = windows.map(({ commit_key }) => commit_key)
    return { id, ...splitBounds(boundsOf(windows)), commits, short: commits.filter(canBeginHash), shown }
  })
  const signals = Map.groupBy(await selectSignalCounts(sql, organisationId, given), ({ promptId }) => promptId)
  return new Map(
    ofPrompts.flatMap(({ id, windows, commits }) => [...attribute(windows, commits, signals.get(id) ?? [])]),
  )
}

/** Compares each of these changes with the one before it, or only the head of a pair with its base. */
export async function readImpacts(
  sql: Sql,
  organisationId: number,
  lists: ChangeLists,
  ids: number[],
  margin: number,
  pair?: Pair,
): Promise<Impact[]> {
  const [counts, entries] = await Promise.all([
    countSignals(sql, organisationId, lists, ids),
    selectEntries(sql, organisationId, ids),
  ])
  const byId = new Map(entries.map((entry) => [entry.id, entry]))
  return ids.flatMap((id) => {
    const [own, entry] = [counts.get(id), byId.get(id)]
    if (!own || !entry) return []
    const beforeId = pair ? (id === pair.head ? pair.base : null) : own.window.before_id
    return showImpact(entry, own, findCounts(counts, beforeId), margin)
  })
}

function showImpact(entry: EntryRow, counts: ChangeCounts, before: ChangeCounts | null, margin: number): Impact {
  const { positive, negative, by_commit, window } = counts
  const compared = before && compareWindows(daysOf(before), daysOf(counts), margin)
  const total = totalOf(counts)
  return {
    change: showTitledEntry(entry),
    window: { from: window.created_at.toISOString(), until: window.live_until?.toISOString() ?? null },
    signals: { positive, negative, total, by_commit, by_time: total - by_commit },
    rate: rateOf(counts),
    difference: compared?.difference ?? null,
    verdict: compared?.verdict ?? null,
    signals_needed: compared?.signalsNeeded ?? null,
    effective: compared?.difference
      ? { signals: Math.round(total / compared.designEffect), design_effect: compared.designEffect }
      : null,
  }
}
