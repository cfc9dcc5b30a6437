import type { Db, Sql } from '../db/client.ts'
import { isLongHash, isShortHash, spellingsOf } from '../history/identity.ts'
import { showTitledEntry } from '../history/schema.ts'
import { totalOf } from '../lib/counts.ts'
import { offsetOf } from '../lib/numbered_page.ts'
import { invalidQuery } from '../lib/params.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { attribute, boundsOf, type ChangeCounts, daysOf, splitBounds } from './attribute.ts'
import { compareWindows, effectiveCounts, verdictFor } from './compare.ts'
import { differenceOf, rateOf } from './rate.ts'
import { defaultMargin, type Impact, type ImpactQuery, type Pair } from './schema.ts'
import {
  type Change,
  selectChangeCommits,
  selectChangePage,
  selectChanges,
  selectNewestChanges,
  selectSignalCounts,
} from './store.ts'

/** A page of changes, newest first, each compared with the one before it; or two changes, head first. */
type ComparedPage = { totalCount: number; data: Impact[] }

/** Reads in one snapshot, so that every signal is counted once. */
type ReadSnapshot = <T>(read: (sql: Sql) => Promise<T>) => Promise<T>

/**
 * Rolls up the prompt's newest signals, unless they are few. Then runs `work`, which reads one or more snapshots until the
 * deadline.
 */
export const readUpToDate = <T>(
  db: Db,
  rollup: SignalRollup,
  { id, organisationId }: OwnedPrompt,
  deadline: number,
  work: (inSnapshot: ReadSnapshot) => Promise<T>,
): Promise<T> =>
  db.heavyRead(organisationId, async () => {
    await rollup.catchUp({ id, organisationId })
    return work((read) => db.transaction(read, { tenant: organisationId, deadline }, 'repeatable read'))
  })

/** Bounds how long a transaction holds the embedded engine's one connection. */
const changesPerTransaction = 10

export async function readImpactPage(
  inSnapshot: ReadSnapshot,
  prompt: OwnedPrompt,
  query: ImpactQuery,
): Promise<ComparedPage> {
  const { pair, margin } = query
  if (pair) return inSnapshot((sql) => readPair(sql, prompt, pair, margin))
  const page = { ...query, offset: offsetOf(query) }
  const { totalCount, ids } = await inSnapshot((sql) => selectChangePage(sql, prompt, page))
  const data: Impact[] = []
  for (let start = 0; start < ids.length; start += changesPerTransaction) {
    const some = ids.slice(start, start + changesPerTransaction)
    const compare = (sql: Sql) => compareChanges(sql, prompt.organisationId, [prompt.id], some, margin)
    data.push(...(await inSnapshot(compare)))
  }
  return { totalCount, data }
}

async function readPair(sql: Sql, prompt: OwnedPrompt, pair: Pair, margin: number): Promise<ComparedPage> {
  const data = await compareChanges(sql, prompt.organisationId, [prompt.id], [pair.head, pair.base], margin, pair)
  const path = (['base', 'head'] as const).find((name) => data.every(({ change }) => change.id !== pair[name]))
  const message = 'must be the id of a change of this prompt, as its impact lists them'
  if (path) throw invalidQuery({ path, message })
  return { totalCount: 2, data }
}

/**
 * Compares each prompt's live change and its newest changes since `since`, at most `limit` per prompt, with the changes
 * before them. Returns the decided ones. Needs a transaction with one snapshot.
 */
export async function readDecidedImpacts(
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  since: Date,
  limit: number,
): Promise<{ promptId: number; impact: DecidedImpact }[]> {
  const recent = await selectNewestChanges(sql, organisationId, promptIds, { since, limit })
  const ids = recent.map(({ id }) => id)
  const { changes, commits } = await readChanges(sql, organisationId, promptIds, ids)
  const compared = changes.filter(({ before_id }) => before_id !== null)
  const comparable = new Set(compared.map(({ prompt_id }) => prompt_id))
  const counted = changes.filter(({ prompt_id }) => comparable.has(prompt_id))
  const counts = await countSignals(sql, organisationId, counted, commits)
  return compared.flatMap((change) => {
    const [countsBefore, own] = [counts.get(change.before_id as number), counts.get(change.id)]
    if (!countsBefore || !own) return []
    const { base, head } = effectiveCounts(daysOf(countsBefore), daysOf(own))
    // Most are undecided, and showImpact would spend far more time on their forecast than the interval takes.
    if (verdictFor(differenceOf(base, head), defaultMargin) === 'undecided') return []
    return { promptId: change.prompt_id, impact: showImpact(change, own, countsBefore, defaultMargin) as DecidedImpact }
  })
}

export type DecidedImpact = Impact & { verdict: 'better' | 'worse' | 'same' }

/** Reads the given changes of prompts and the change before each, and the commits of all changes of each prompt. */
async function readChanges(sql: Sql, organisationId: number, promptIds: number[], ids: number[]) {
  const [changes, rows] = await Promise.all([
    selectChanges(sql, organisationId, ids),
    selectChangeCommits(sql, organisationId, promptIds),
  ])
  const commits = new Map(rows.map((row) => [row.prompt_id, row.commits]))
  return { changes: changes.filter((change) => promptIds.includes(change.prompt_id)), commits }
}

/** Counts the signals of each change. `commits` are those of all changes of each prompt. */
async function countSignals(sql: Sql, organisationId: number, changes: Change[], commits: Map<number, string[]>) {
  if (changes.length === 0) return new Map<number, ChangeCounts>()
  const prompts = [...Map.groupBy(changes, ({ prompt_id }) => prompt_id)].map(([id, own]) => {
    return { id, own, bounds: boundsOf(own), all: commits.get(id) ?? [] }
  })
  const counted = prompts.map(({ id, own, bounds, all }) => {
    const [long, short] = [all.filter(isLongHash), all.filter(isShortHash)]
    const shown = own.map(({ commit_key }) => spellingsOf(commit_key).start ?? commit_key)
    return { id, ...splitBounds(bounds), commits: all, long, short, shown }
  })
  const signals = Map.groupBy(await selectSignalCounts(sql, organisationId, counted), ({ promptId }) => promptId)
  return new Map(prompts.flatMap(({ id, own, bounds, all }) => [...attribute(own, bounds, all, signals.get(id) ?? [])]))
}

/** Reads the given changes of prompts and the change before each, with their signals. Leaves out ids that are not changes. */
export async function readChangeCounts(sql: Sql, organisationId: number, promptIds: number[], ids: number[]) {
  const { changes, commits } = await readChanges(sql, organisationId, promptIds, ids)
  return { changes, counts: await countSignals(sql, organisationId, changes, commits) }
}

/** Compares each given change of prompts with the one before it, or only the head of a pair with its base. */
export async function compareChanges(
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  ids: number[],
  margin: number,
  pair?: Pair,
) {
  const { changes, counts } = await readChangeCounts(sql, organisationId, promptIds, ids)
  const byId = new Map(changes.map((change) => [change.id, change]))
  return ids.flatMap((id) => {
    const change = byId.get(id)
    if (!change) return []
    const beforeId = pair ? (id === pair.head ? pair.base : null) : change.before_id
    const countsBefore = (beforeId !== null && counts.get(beforeId)) || null
    return showImpact(change, counts.get(id) as ChangeCounts, countsBefore, margin)
  })
}

function showImpact(change: Change, counts: ChangeCounts, countsBefore: ChangeCounts | null, margin: number): Impact {
  const { positive, negative, by_commit } = counts
  const compared = countsBefore && compareWindows(daysOf(countsBefore), daysOf(counts), margin)
  const total = totalOf(counts)
  return {
    change: showTitledEntry(change),
    window: { from: change.created_at.toISOString(), until: change.live_until?.toISOString() ?? null },
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
