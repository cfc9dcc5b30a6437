import type { Db, Sql } from '../db/client.ts'
import { type EntryRow, showTitledEntry } from '../history/schema.ts'
import { totalOf } from '../lib/counts.ts'
import { offsetOf } from '../lib/numbered_page.ts'
import { invalidQuery } from '../lib/params.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { attribute, boundsOf, type ChangeCounts, type DayCounts, requestCounts } from './attribute.ts'
import { compareWindows, fewestBaseSignals } from './compare.ts'
import { rateOf } from './rate.ts'
import { findRateChange, type RateChange } from './rate_change.ts'
import { defaultMargin, type Impact, type ImpactQuery, type Pair } from './schema.ts'
import { selectChangeEntries, selectChangePage, selectSignalCounts, selectTimelines } from './store.ts'
import { type ChangeWindow, type Timeline, windowsOf } from './timeline.ts'
import { estimateWander, showWander } from './wander.ts'

/**
 * A page of changes, newest first, each compared with its base; or two changes, head first. `rateChanged` is null unless the
 * live change is one of them.
 */
type ComparedPage = { totalCount: number; data: Impact[]; rateChanged: RateChange | null }

/** Reads in one snapshot, so that every signal is counted once. */
type ReadSnapshot = <T>(read: (sql: Sql) => Promise<T>) => Promise<T>

export const createSnapshots =
  (db: Db, organisationId: number, deadline: number): ReadSnapshot =>
  (read) =>
    db.transaction(read, { tenant: organisationId, deadline }, 'repeatable read')

/**
 * Rolls up the prompt's newest signals, unless they are few. Then runs `work`, which reads one or more snapshots until the
 * deadline.
 */
export const readUpToDate = <T>(
  db: Db,
  rollup: SignalRollup,
  prompt: OwnedPrompt,
  deadline: number,
  work: (inSnapshot: ReadSnapshot) => Promise<T>,
): Promise<T> =>
  db.heavyRead(prompt.organisationId, async () => {
    await rollup.catchUp(prompt)
    return work(createSnapshots(db, prompt.organisationId, deadline))
  })

/** Bounds how long a transaction holds the embedded engine's one connection. Each change reads earlier ones, too. */
export const changesPerStep = 25

/** Reads a list in steps of `size` items, until it is late. */
export async function readInSteps<T, Read>(
  items: T[],
  size: number,
  readStep: (some: T[]) => Promise<Read[]>,
  isLate = () => false,
): Promise<Read[]> {
  const found: Read[] = []
  for (let start = 0; start < items.length && !(start > 0 && isLate()); start += size) {
    found.push(...(await readStep(items.slice(start, start + size))))
  }
  return found
}

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
  let rateChanged: RateChange | null = null
  const data = await readInSteps(ids, changesPerStep, async (some) => {
    const known = await inSnapshot((sql) => readChanges(sql, prompt.organisationId, [prompt.id], () => some))
    rateChanged ??= findRateChanges(known, now)[0]?.found ?? null
    return showImpacts(known, margin).map(({ impact }) => impact)
  })
  return { totalCount, data, rateChanged }
}

export const noChange = 'must be the id of a change of this prompt, as its impact lists them'

async function readPair(sql: Sql, prompt: OwnedPrompt, pair: Pair, margin: number): Promise<ComparedPage> {
  const known = await readChanges(sql, prompt.organisationId, [prompt.id], () => [pair.head, pair.base])
  const [base, head] = (['base', 'head'] as const).map((path) => {
    const change = known.get(pair[path])
    if (!change) throw invalidQuery({ path, message: noChange })
    return change
  }) as [CountedChange, CountedChange]
  const data = [showImpact(known, head, margin, { ...base, skipped: 0 }), showImpact(known, base, margin, null)]
  return { totalCount: 2, data, rateChanged: null }
}

/**
 * Compares each prompt's live change and its newest changes since `since`, at most `limit` per prompt, with their bases.
 * Returns the decided ones, and the live changes of `rateIds` whose rate moved without a change. Needs a transaction with one
 * snapshot.
 */
export async function readNews(
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  { since, limit, rateIds, now }: { since: Date; limit: number; rateIds: number[]; now: Date },
) {
  const choose: Choose = (timeline, promptId) => {
    // The only change of a prompt has no base.
    if (timeline.length === 1 && !rateIds.includes(promptId)) return []
    const isWatched = ([, liveAt]: Timeline[number], index: number, { length }: Timeline) =>
      liveAt >= since.getTime() || index === length - 1
    return timeline
      .slice(-limit)
      .filter(isWatched)
      .map(([id]) => id)
  }
  const known = await readChanges(sql, organisationId, promptIds, choose)
  const decided = showImpacts(known, defaultMargin).filter(isDecided)
  return { decided, rateChanges: findRateChanges(known, now).filter(({ promptId }) => rateIds.includes(promptId)) }
}

export type News = Awaited<ReturnType<typeof readNews>>

type ShownImpact = { promptId: number; impact: Impact }

const isDecided = (one: ShownImpact): one is ShownImpact & { impact: { verdict: 'better' | 'worse' | 'same' } } =>
  one.impact.verdict !== null && one.impact.verdict !== 'undecided'

/** A change with its signals. */
type CountedChange = EntryRow & ChangeWindow & { promptId: number; counts: ChangeCounts }

type KnownChanges = Map<number, CountedChange>

/** The live changes whose rate moved without a change. */
export const findRateChanges = (known: KnownChanges, now: Date) =>
  [...known.values()].flatMap((change) => {
    const found = change.live_until === null && findRateChange(daysWhileLive(change), now)
    return found ? { promptId: change.promptId, change: showTitledEntry(change), found } : []
  })

/** Without days on which its signals, by their commit, came before it or as another change went live. */
const daysWhileLive = ({ created_at, counts }: CountedChange): DayCounts[] =>
  counts.days.filter(({ date }) => date > created_at.toISOString().slice(0, 10))

/** Chooses changes of a prompt by their ids. */
type Choose = (timeline: Timeline, promptId: number) => number[]

/** Reads the chosen changes of prompts and those before each, with their signals. Leaves out ids that are not changes. */
export async function readChanges(
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  choose: Choose,
  { withEarlier } = { withEarlier: true },
): Promise<KnownChanges> {
  const timelines = await selectTimelines(sql, organisationId, promptIds)
  const prompts = timelines.flatMap(({ promptId, timeline }) => {
    const windows = windowsOf(timeline, choose(timeline, promptId)).filter(({ is_asked }) => is_asked || withEarlier)
    return windows.length > 0 ? { promptId, windows, commits: [...new Set(timeline.map((one) => one[2]))] } : []
  })
  if (prompts.length === 0) return new Map()
  const ids = prompts.flatMap(({ windows }) => windows.map(({ id }) => id))
  const requests = prompts.map(({ promptId, windows, commits }) => {
    const shown = windows.map(({ commit_key }) => commit_key)
    return requestCounts(promptId, boundsOf(windows), commits, shown)
  })
  const [entries, counts] = await Promise.all([
    selectChangeEntries(sql, organisationId, ids),
    selectSignalCounts(sql, organisationId, requests),
  ])
  const entryOf = new Map(entries.map((entry) => [entry.id, entry]))
  const signals = Map.groupBy(counts, ({ promptId }) => promptId)
  const counted = prompts.flatMap(({ promptId, windows, commits }) =>
    attribute(windows, commits, signals.get(promptId) ?? []).map((change) => {
      return { ...(entryOf.get(change.id) as EntryRow), ...change, promptId }
    }),
  )
  return new Map(counted.map((change) => [change.id, change]))
}

/** An earlier change, and how many changes between them are skipped. */
type Base = CountedChange & { skipped: number }

/** What a change is compared with: the nearest earlier change with enough signals, else the one before it, if there is one. */
export function findBase(known: KnownChanges, { earlier_ids }: ChangeWindow): Base | null {
  const earlier = earlier_ids.flatMap((id) => known.get(id) ?? [])
  const skipped = Math.max(
    earlier.findIndex(({ counts }) => totalOf(counts) >= fewestBaseSignals),
    0,
  )
  const base = earlier[skipped]
  return base ? { ...base, skipped } : null
}

/** The days of the changes before one, oldest first. They tell how the rate wanders without changes. */
export function findPast(known: KnownChanges, change: CountedChange, base: Base | null): DayCounts[][] {
  // A chosen base may be any change. Its past was then read, too.
  const isChosen = base !== null && !change.earlier_ids.includes(base.id)
  const ids = new Set([...change.earlier_ids, ...(isChosen ? [base.id, ...base.earlier_ids] : [])])
  ids.delete(change.id)
  const past = [...ids].flatMap((id) => known.get(id) ?? [])
  return past.toSorted((a, b) => Number(a.created_at) - Number(b.created_at)).map(({ counts }) => counts.days)
}

/** Compares the days of a change, or the first of them, with its base. */
export function compareDays(
  past: DayCounts[][],
  base: Base | null,
  days: DayCounts[],
  options: { margin: number; isOver: boolean },
) {
  const wander = estimateWander([...past, days])
  const compared = base && compareWindows(base.counts.days, days, wander, options)
  return { wander, ...(compared ?? { difference: null, verdict: null, signals_needed: null }) }
}

/** Compares each change that was asked for with its base. */
export const showImpacts = (known: KnownChanges, margin: number): ShownImpact[] =>
  [...known.values()]
    .filter(({ is_asked }) => is_asked)
    .map((change) => ({ promptId: change.promptId, impact: showImpact(known, change, margin) }))

export function showImpact(
  known: KnownChanges,
  change: CountedChange,
  margin: number,
  base = findBase(known, change),
): Impact {
  const { positive, negative, by_commit, days } = change.counts
  const total = positive + negative
  const isOver = change.live_until !== null
  const { wander, ...compared } = compareDays(findPast(known, change, base), base, days, { margin, isOver })
  return {
    change: showTitledEntry(change),
    base: base && showBase(base),
    window: { from: change.created_at.toISOString(), until: change.live_until?.toISOString() ?? null },
    signals: { positive, negative, total, by_commit, by_time: total - by_commit },
    rate: rateOf(change.counts),
    ...compared,
    wander: compared.difference && showWander(wander),
  }
}

const showBase = ({ id, commit_sha, pr_number, pr_url, title, skipped }: Base): Impact['base'] => ({
  ...{ id, commit_sha, pr_number, pr_url, title },
  skipped,
})
