import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import type { HeavyReads } from '../db/heavy_reads.ts'
import { invalid } from '../errors.ts'
import { showEntry } from '../history/read.ts'
import type { CursorPage } from '../lib/cursor_page.ts'
import { offsetOf } from '../lib/numbered_page.ts'
import type { Prompt } from '../prompts/find.ts'
import { listPrompts } from '../prompts/manage.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { compare } from './compare.ts'
import { type Counts, rateOf } from './rate.ts'
import type { Impact, RecentSignals } from './schema.ts'
import type { ImpactQuery, OverviewQuery, Pair } from './schema_params.ts'
import { listSorted } from './sort.ts'
import {
  type ChangeRow,
  type PromptSummary,
  selectChanges,
  selectChangesById,
  selectPromptIds,
  selectSummaries,
} from './store.ts'

/** What the list of prompts shows of one. */
type PromptImpact = { prompt: object; latest: Impact | null; recent: RecentSignals }

export type ImpactReader = {
  /** The changes that a query selects, newest first, each against the one before it; or two, the head against the base. */
  read(prompt: Prompt, query: ImpactQuery): Promise<{ totalCount: number; data: Impact[] }>
  /** For each prompt of a page: the change that is live against the one before it, and the signals of the last days. */
  summarise(organisationId: number, query: OverviewQuery): Promise<CursorPage<PromptImpact>>
}

const shownDays = 30
const dayMs = 86_400_000
/** A statement reads this many prompts: the embedded engine has one connection, which nobody may hold for long. */
const promptsPerStatement = 10

/** Changes take longer to read the more signals they have, so an organisation has no more than its share of reads at a time. */
export function createImpactReader(db: Db, clock: Clock, rollup: SignalRollup, heavyReads: HeavyReads): ImpactReader {
  async function readPage({ id }: Prompt, query: ImpactQuery) {
    const { limit, margin } = query
    const { totalCount, changes } = await selectChanges(db.sql, id, query, offsetOf(query), limit)
    return { totalCount, data: changes.map(({ before, ...change }) => describeChange(change, before, margin)) }
  }

  async function readPair({ id }: Prompt, pair: Pair, margin: number) {
    const found = await selectChangesById(db.sql, id, [pair.base, pair.head])
    const [base, head] = (['base', 'head'] as const).map((name) => {
      const change = found.find((row) => row.id === pair[name])
      if (change) return change
      throw invalid('The query is not valid.', [
        { path: name, message: 'must be the id of a history entry of this prompt that is deployed or pr_merged' },
      ])
    }) as [ChangeRow, ChangeRow]
    return { totalCount: 2, data: [describeChange(head, base, margin), describeChange(base, null, margin)] }
  }

  return {
    async read(prompt, query) {
      const { pair, margin } = query
      return heavyReads(prompt.organisationId, async () => {
        await rollup.catchUp(prompt.id)
        return pair ? readPair(prompt, pair, margin) : readPage(prompt, query)
      })
    },
    async summarise(organisationId, { margin, search, sort, ...request }) {
      const beganAt = performance.now()
      const limitedHere = <T>(read: () => Promise<T>) => heavyReads(organisationId, read)
      const catchUp = (promptIds: number[]) => rollup.catchUpEach(promptIds, beganAt)
      const bounds = daysUntil(clock.now())
      const [since, until] = [bounds[0] as Date, bounds.at(-1) as Date]
      const listed =
        sort === null
          ? await limitedHere(() => listPrompts(db, organisationId, request, search))
          : await listSorted(db, { organisationId, search, sort, since, until }, request, limitedHere, catchUp)
      const { data: prompts, ...page } = listed
      const publicIds = prompts.map(({ id }) => id)
      await limitedHere(async () => catchUp(await selectPromptIds(db.sql, organisationId, publicIds)))
      const summaries = new Map<string, PromptSummary>()
      for (let start = 0; start < publicIds.length; start += promptsPerStatement) {
        const ids = publicIds.slice(start, start + promptsPerStatement)
        const read = () => selectSummaries(db.sql, organisationId, ids, bounds)
        for (const one of await limitedHere(read)) summaries.set(one.prompt, one)
      }
      const data = prompts.map((prompt) => ({
        prompt,
        latest: describeLatest(summaries.get(prompt.id), margin),
        recent: describeDays(summaries.get(prompt.id), bounds),
      }))
      return { ...page, data }
    },
  }
}

/** A change against the signals of the one before it, if there is one. */
function describeChange(change: ChangeRow, before: Counts | null, margin: number): Impact {
  const { positive, negative, by_commit, live_until } = change
  const compared = before && compare(before, change, margin)
  const total = positive + negative
  return {
    change: showEntry(change),
    window: { from: change.created_at.toISOString(), until: live_until?.toISOString() ?? null },
    signals: { positive, negative, total, by_commit, by_time: total - by_commit },
    rate: rateOf(change),
    difference: compared?.difference ?? null,
    verdict: compared?.verdict ?? null,
    signals_needed: compared?.signalsNeeded ?? null,
  }
}

function describeLatest(summary: PromptSummary | undefined, margin: number): Impact | null {
  const [latest, before] = (summary?.changes ?? []).map(({ created_at, live_until, ...change }) => ({
    ...change,
    created_at: new Date(created_at),
    live_until: live_until === null ? null : new Date(live_until),
  }))
  return latest ? describeChange(latest, before ?? null, margin) : null
}

/** The first instants of the last days, UTC, and of tomorrow. */
function daysUntil(now: Date): Date[] {
  const tomorrow = (Math.floor(now.getTime() / dayMs) + 1) * dayMs
  return Array.from({ length: shownDays + 1 }, (_, index) => new Date(tomorrow - (shownDays - index) * dayMs))
}

function describeDays(summary: PromptSummary | undefined, bounds: Date[]): RecentSignals {
  const counts = new Map((summary?.spans ?? []).map(([number, positive, negative]) => [number, { positive, negative }]))
  const days = bounds.slice(0, -1).map((start, index) => ({
    date: start.toISOString().slice(0, 10),
    ...(counts.get(index + 1) ?? { positive: 0, negative: 0 }),
  }))
  const positive = days.reduce((sum, day) => sum + day.positive, 0)
  const negative = days.reduce((sum, day) => sum + day.negative, 0)
  return { positive, negative, total: positive + negative, rate: rateOf({ positive, negative }), days }
}
