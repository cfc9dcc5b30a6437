import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { invalid } from '../errors.ts'
import { addCounts, totalOf } from '../lib/counts.ts'
import { type CursorPage, decodeCursor, encodeCursor, type PageRequest } from '../lib/cursor_page.ts'
import { createSharedReads } from '../lib/shared_read.ts'
import { dayMs } from '../lib/times.ts'
import { findOwnPrompts, listPrompts, listPromptsOf } from '../prompts/find.ts'
import type { PromptRow } from '../prompts/schema.ts'
import { type SpanCount, selectSpanCounts } from '../stats/read.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { rateOf } from './rate.ts'
import type { RateChange } from './rate_change.ts'
import { createSnapshots, findRateChanges, readChanges, readInSteps, showImpacts } from './read.ts'
import { type Impact, maxComparedPrompts, maxSortedPrompts, type OverviewQuery, type RecentSignals } from './schema.ts'
import { groupOf, verdictOrder } from './schema_changes.ts'
import { type SortedList, selectSortedPrompts } from './store_lists.ts'

type PromptImpact = { prompt: PromptRow; latest: Impact | null; rate_changed: RateChange | null; recent: RecentSignals }
type Page = CursorPage<PromptImpact>

const shownDays = 30
/** Bounds how long a transaction holds the embedded engine's one connection. */
const promptsPerStep = 10

type Services = { db: Db; clock: Clock; rollup: SignalRollup }

/** Reads pages of prompts: the live change of each, compared with its base, and its signals of the last 30 days. */
export function createOverview({ db, clock, rollup }: Services) {
  const share = createSharedReads<Page>()

  async function sortPrompts(list: SortedList, { limit, cursor }: PageRequest): Promise<CursorPage<PromptRow>> {
    const { organisationId, filters, sort, withSignals } = list
    const name = JSON.stringify(['sorted impact', organisationId, filters, sort, withSignals])
    const after = decodeCursor(name, cursor)
    const { found, places } = await selectSortedPrompts(db.sql, list, after, limit + 1, maxSortedPrompts)
    if (found > maxSortedPrompts) throw tooMany('sort', maxSortedPrompts, 'prompts')
    const shown = places.slice(0, limit)
    const last = shown.at(-1)
    const nextCursor = last && places.length > limit ? encodeCursor(name, { ...last, at: null }) : null
    const ids = shown.map(({ id }) => id)
    return { data: await listPromptsOf(db.sql, organisationId, ids), limit, nextCursor }
  }

  /** Reads in steps, so that a caller waits for no others longer than for one step. */
  async function readRows(listed: PromptRow[], asked: Asked, deadline: number): Promise<PromptImpact[]> {
    const { organisationId } = asked
    const startedAt = performance.now()
    const limited = <T>(read: () => Promise<T>) => db.heavyRead(organisationId, read)
    const publicIds = listed.map(({ id }) => id)
    const rowIds = await findOwnPrompts(db.sql, organisationId, publicIds)
    // A prompt may have been erased since it was listed.
    const prompts = listed.flatMap((prompt) => {
      const id = rowIds.get(prompt.id)
      return id === undefined ? [] : { id, prompt }
    })
    await limited(() => rollup.catchUpEach(organisationId, [...rowIds.values()], startedAt))
    const inSnapshot = createSnapshots(db, organisationId, deadline)
    return readInSteps(prompts, promptsPerStep, (some) =>
      limited(() => inSnapshot((sql) => readImpacts(sql, some, asked))),
    )
  }

  async function readPage(organisationId: number, query: OverviewQuery, deadline: number): Promise<Page> {
    const { margin, search, archived, sort, show, ...request } = query
    const filters = { search, archived }
    const now = clock.now()
    const days = daysUntil(now)
    const verdict = show === 'signals' ? null : show
    const comparesAll = sort === 'effect' || verdict !== null
    const list = {
      ...{ organisationId, filters, withSignals: show !== null || comparesAll },
      sort: sort === 'effect' ? ('signals' as const) : (sort ?? 'last_change'),
      ...{ from: days[0] as Date, until: days.at(-1) as Date },
    }
    const { data, ...page } = await db.heavyRead(organisationId, () => {
      if (sort === null && show === null) return listPrompts(db, organisationId, request, filters, 'impact')
      return sortPrompts(list, comparesAll ? { limit: maxComparedPrompts, cursor: null } : request)
    })
    if (comparesAll && page.nextCursor)
      throw tooMany(sort === 'effect' ? 'sort' : 'show', maxComparedPrompts, 'prompts with signals')
    const rows = await readRows(data, { organisationId, margin, now, days }, deadline)
    if (!comparesAll) return { ...page, data: rows }
    const wanted = rows.filter(({ latest }) => verdict === null || latest?.verdict === verdict)
    const ordered = sort === 'effect' ? wanted.toSorted(byEffect) : wanted
    // The verdicts may have changed since the last page: its length is the place of the next one.
    const name = JSON.stringify(['compared impact', organisationId, filters, sort, show])
    const start = decodeCursor(name, request.cursor)?.id ?? 0
    const end = start + request.limit
    return {
      data: ordered.slice(start, end),
      limit: request.limit,
      nextCursor: end < ordered.length ? encodeCursor(name, { id: end, at: null }) : null,
    }
  }

  return (organisationId: number, query: OverviewQuery, deadline: number): Promise<Page> =>
    share(JSON.stringify([organisationId, query]), () => readPage(organisationId, query, deadline))
}

type Asked = { organisationId: number; margin: number; now: Date; days: Date[] }

async function readImpacts(
  sql: Sql,
  prompts: { id: number; prompt: PromptRow }[],
  { organisationId, margin, now, days }: Asked,
): Promise<PromptImpact[]> {
  const ids = prompts.map(({ id }) => id)
  const [known, recent] = await Promise.all([
    readChanges(sql, organisationId, ids, (timeline) => timeline.slice(-1).map(([id]) => id)),
    selectSpanCounts(sql, organisationId, ids, days),
  ])
  const liveOf = new Map(showImpacts(known, margin).map(({ promptId, impact }) => [promptId, impact]))
  const rateChanges = findRateChanges(known, now)
  const recentOf = Map.groupBy(recent, ({ promptId }) => promptId)
  return prompts.map(({ id, prompt }) => ({
    prompt,
    latest: liveOf.get(id) ?? null,
    rate_changed: rateChanges.find(({ promptId }) => promptId === id)?.found ?? null,
    recent: describeDays(recentOf.get(id) ?? [], days),
  }))
}

/** The midnights (UTC) at which the last 30 days and tomorrow begin. */
function daysUntil(now: Date): Date[] {
  const tomorrow = (Math.floor(now.getTime() / dayMs) + 1) * dayMs
  return Array.from({ length: shownDays + 1 }, (_, index) => new Date(tomorrow - (shownDays - index) * dayMs))
}

function describeDays(spans: SpanCount[], bounds: Date[]): RecentSignals {
  const sum = addCounts(spans)
  const byNumber = new Map(spans.map(({ number, positive, negative }) => [number, { positive, negative }]))
  const days = bounds.slice(0, -1).map((start, index) => ({
    date: start.toISOString().slice(0, 10),
    ...(byNumber.get(index + 1) ?? { positive: 0, negative: 0 }),
  }))
  return { ...sum, total: totalOf(sum), rate: rateOf(sum), days }
}

const tooMany = (path: 'sort' | 'show', most: number, what: string) =>
  invalid(`There are more than ${most} ${what} to compare. Search for fewer, or leave ${path} out.`, [
    { path, message: `must be left out where more than ${most} ${what} are found` },
  ])

const byEffect = (a: PromptImpact, b: PromptImpact): number =>
  placeOf(a.latest) - placeOf(b.latest) ||
  Math.abs(b.latest?.difference?.value ?? 0) - Math.abs(a.latest?.difference?.value ?? 0)

const placeOf = (latest: Impact | null): number => verdictOrder.indexOf(latest ? groupOf(latest) : 'without_signals')
