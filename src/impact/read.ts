import type { Db, Sql } from '../db/client.ts'
import { isLongHash, isShortHash, spellingsOf } from '../history/identity.ts'
import { showTitledEntry } from '../history/schema.ts'
import { totalOf } from '../lib/counts.ts'
import { offsetOf } from '../lib/numbered_page.ts'
import { invalidQuery } from '../lib/params.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { attribute, boundsOf, type ChangeCounts, daysOf, splitBounds } from './attribute.ts'
import { compareWindows, fewestBaseSignals } from './compare.ts'
import { rateOf } from './rate.ts'
import { findRateChange, type RateChange } from './rate_change.ts'
import { defaultMargin, type Impact, type ImpactQuery, type Pair } from './schema.ts'
import {
  type Change,
  selectChangeCommits,
  selectChangePage,
  selectChanges,
  selectNewestChanges,
  selectSignalCounts,
} from './store.ts'
import { estimateWander, showWander, wanderDays } from './wander.ts'

/**
 * A page of changes, newest first, each compared with its base; or two changes, head first. `rateChanged` is null unless the
 * live change is one of them.
 */
type ComparedPage = { totalCount: number; data: Impact[]; rateChanged: RateChange | null }

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

/** Bounds how long a transaction holds the embedded engine's one connection. Each reads earlier changes, too. */
const changesPerTransaction = 25

export async function readImpactPage(
  inSnapshot: ReadSnapshot,
  prompt: OwnedPrompt,
  query: ImpactQuery,
  now: Date,
): Promise<ComparedPage> {
  const { pair, margin } = query
  if (pair) return inSnapshot((sql) => readPair(sql, prompt, pair, margin))
  const page = { ...query, offset: offsetOf(query) }
  const { totalCount, ids } = await inSnapshot((sql) => selectChangePage(sql, prompt, page))
  const data: Impact[] = []
  let rateChanged: RateChange | null = null
  for (let start = 0; start < ids.length; start += changesPerTransaction) {
    const some = ids.slice(start, start + changesPerTransaction)
    const known = await inSnapshot((sql) => readChangeCounts(sql, prompt.organisationId, [prompt.id], some))
    data.push(...showImpacts(known, some, margin))
    rateChanged ??= findRateChanges(known, now)[0]?.found ?? null
  }
  return { totalCount, data, rateChanged }
}

export const noChange = 'must be the id of a change of this prompt, as its impact lists them'

async function readPair(sql: Sql, prompt: OwnedPrompt, pair: Pair, margin: number): Promise<ComparedPage> {
  const data = await compareChanges(sql, prompt.organisationId, [prompt.id], [pair.head, pair.base], margin, pair)
  const path = (['base', 'head'] as const).find((name) => data.every(({ change }) => change.id !== pair[name]))
  if (path) throw invalidQuery({ path, message: noChange })
  return { totalCount: 2, data, rateChanged: null }
}

/**
 * Compares each prompt's live change and its newest changes since `since`, at most `limit` per prompt, with their bases.
 * Returns the decided ones, and the rates of `rateIds` that changed by themselves. Needs a transaction with one snapshot.
 */
export async function readNews(
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  { since, limit, rateIds, now }: { since: Date; limit: number; rateIds: number[]; now: Date },
): Promise<News> {
  const recent = await selectNewestChanges(sql, organisationId, promptIds, { since, limit })
  const ids = recent.map(({ id }) => id)
  const { changes, commits } = await readChanges(sql, organisationId, promptIds, ids)
  const comparable = new Set(changes.flatMap(({ earlier_ids, prompt_id }) => (earlier_ids.length > 0 ? prompt_id : [])))
  const counted = changes.filter(({ prompt_id }) => comparable.has(prompt_id) || rateIds.includes(prompt_id))
  const known = await addSignalCounts(sql, organisationId, counted, commits)
  const decided = recent.flatMap(({ id, prompt_id }) => {
    const impact = showImpact(known, id, defaultMargin)
    return impact && isDecided(impact) ? { promptId: prompt_id, impact } : []
  })
  return { decided, rateChanges: findRateChanges(known, now).filter(({ promptId }) => rateIds.includes(promptId)) }
}

export type News = { decided: { promptId: number; impact: DecidedImpact }[]; rateChanges: LiveRateChange[] }

type LiveRateChange = { promptId: number; change: Impact['change']; found: RateChange }

/** The live changes whose rate changed by itself. */
export const findRateChanges = ({ changes, counts }: KnownChanges, now: Date): LiveRateChange[] =>
  [...changes.values()].flatMap((change) => {
    const found = change.live_until === null && findRateChange(daysOf(counts.get(change.id) as ChangeCounts), now)
    return found ? { promptId: change.prompt_id, change: showTitledEntry(change), found } : []
  })

type DecidedImpact = Impact & { verdict: 'better' | 'worse' | 'same' }

const isDecided = (impact: Impact): impact is DecidedImpact => impact.verdict !== null && impact.verdict !== 'undecided'

/** Reads the given changes of prompts and those before each, and the commits of all changes of each prompt. */
export async function readChanges(sql: Sql, organisationId: number, promptIds: number[], ids: number[]) {
  const [changes, rows] = await Promise.all([
    selectChanges(sql, organisationId, ids, wanderDays),
    selectChangeCommits(sql, organisationId, promptIds),
  ])
  const commits = new Map(rows.map((row) => [row.prompt_id, row.commits]))
  return { changes: changes.filter((change) => promptIds.includes(change.prompt_id)), commits }
}

/** Changes and the signals of each, by their ids. */
type KnownChanges = { changes: Map<number, Change>; counts: Map<number, ChangeCounts> }

/** Counts the signals of each prompt between the bounds of its changes. `commits` are those of all its changes. */
export async function countSignals(
  sql: Sql,
  organisationId: number,
  changes: Change[],
  commits: Map<number, string[]>,
) {
  if (changes.length === 0) return []
  const prompts = [...Map.groupBy(changes, ({ prompt_id }) => prompt_id)].map(([id, own]) => {
    return { id, own, bounds: boundsOf(own), all: commits.get(id) ?? [] }
  })
  const counted = prompts.map(({ id, own, bounds, all }) => {
    const [long, short] = [all.filter(isLongHash), all.filter(isShortHash)]
    const shown = own.map(({ commit_key }) => spellingsOf(commit_key).start ?? commit_key)
    return { id, ...splitBounds(bounds), commits: all, long, short, shown }
  })
  const signals = Map.groupBy(await selectSignalCounts(sql, organisationId, counted), ({ promptId }) => promptId)
  return prompts.map((prompt) => ({ ...prompt, signals: signals.get(prompt.id) ?? [] }))
}

/** Adds the signals of each change. */
async function addSignalCounts(
  sql: Sql,
  organisationId: number,
  changes: Change[],
  commits: Map<number, string[]>,
): Promise<KnownChanges> {
  const counted = await countSignals(sql, organisationId, changes, commits)
  const counts = counted.flatMap(({ own, bounds, all, signals }) => [...attribute(own, bounds, all, signals)])
  return { changes: new Map(changes.map((change) => [change.id, change])), counts: new Map(counts) }
}

/** Reads the given changes of prompts and those before each, with their signals. Leaves out ids that are not changes. */
export async function readChangeCounts(
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  ids: number[],
): Promise<KnownChanges> {
  const { changes, commits } = await readChanges(sql, organisationId, promptIds, ids)
  return addSignalCounts(sql, organisationId, changes, commits)
}

/** Compares each given change of prompts with its base, or only the head of a pair with the base of the pair. */
export async function compareChanges(
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  ids: number[],
  margin: number,
  pair?: Pair,
) {
  return showImpacts(await readChangeCounts(sql, organisationId, promptIds, ids), ids, margin, pair)
}

export const showImpacts = (known: KnownChanges, ids: number[], margin: number, pair?: Pair): Impact[] =>
  ids.flatMap((id) => showImpact(known, id, margin, pair && (id === pair.head ? pair.base : null)) ?? [])

type Base = { change: Change; skipped: number }

/**
 * What a change is compared with: the nearest earlier change with enough signals, else the one before it; null for the
 * first. Exactly the given one, if one is given.
 */
function findBase(
  { changes, counts }: KnownChanges,
  { earlier_ids }: Change,
  given: number | null | undefined,
): Base | null {
  const hasEnough = (id: number) => totalOf(counts.get(id) as ChangeCounts) >= fewestBaseSignals
  const id = given === undefined ? (earlier_ids.find(hasEnough) ?? earlier_ids[0]) : given
  const change = changes.get(id ?? 0)
  return change ? { change, skipped: given === undefined ? earlier_ids.indexOf(change.id) : 0 } : null
}

/** Which change a change is compared with, and how the rate wanders by itself: by the days of both and those before. */
export function findBasis(known: KnownChanges, change: Change, given?: number | null) {
  const base = findBase(known, change, given)
  const past = new Set([...change.earlier_ids, ...(base ? [base.change.id, ...base.change.earlier_ids] : [])])
  const windows = [...past]
    .flatMap((id) => known.changes.get(id) ?? [])
    .toSorted((a, b) => Number(a.created_at) - Number(b.created_at))
    .map(({ id }) => daysOf(known.counts.get(id) as ChangeCounts))
  return { base, windows }
}

const showBase = ({
  change: { id, commit_sha, pr_number, pr_url, title },
  skipped,
}: Base): NonNullable<Impact['base']> => ({
  ...{ id, commit_sha, pr_number, pr_url, title },
  skipped,
})

/** Undefined for an id that is not a change. */
export function showImpact(known: KnownChanges, id: number, margin: number, given?: number | null): Impact | undefined {
  const [change, counts] = [known.changes.get(id), known.counts.get(id)]
  if (!change || !counts) return undefined
  const { base, windows } = findBasis(known, change, given)
  const [baseDays, headDays] = [base && daysOf(known.counts.get(base.change.id) as ChangeCounts), daysOf(counts)]
  const wander = estimateWander([...windows, headDays])
  const isOver = change.live_until !== null
  const compared = baseDays && compareWindows(baseDays, headDays, wander, { margin, isOver })
  const { positive, negative, by_commit } = counts
  const total = totalOf(counts)
  return {
    change: showTitledEntry(change),
    base: base && showBase(base),
    window: { from: change.created_at.toISOString(), until: change.live_until?.toISOString() ?? null },
    signals: { positive, negative, total, by_commit, by_time: total - by_commit },
    rate: rateOf(counts),
    difference: compared?.difference ?? null,
    verdict: compared?.verdict ?? null,
    signals_needed: compared?.signalsNeeded ?? null,
    wander: compared?.difference ? showWander(wander) : null,
  }
}
