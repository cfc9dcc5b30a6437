import type { Db, Sql } from '../db/client.ts'
import { readEntries, showEntry } from '../history/read.ts'
import { invalidQuery } from '../lib/params.ts'
import type { Prompt } from '../prompts/find.ts'
import { selectSpanCounts } from '../stats/read.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { attribute, boundsOf, type ChangeCounts, type ChangeWindow } from './attribute.ts'
import { compare } from './compare.ts'
import { rateOf, totalOf } from './rate.ts'
import type { Impact } from './schema.ts'
import { type ImpactQuery, liveActions, type Pair } from './schema_params.ts'
import { type ChangeRow, selectChangesById, selectNamedCounts, selectWindows } from './store.ts'

/** A page of changes, newest first, each compared with the one before it; or two changes, head first. */
type ImpactPage = { totalCount: number; data: Impact[] }

/** Reads in one snapshot, so that every signal is counted once. */
export async function readImpact(
  db: Db,
  rollup: SignalRollup,
  prompt: Prompt,
  query: ImpactQuery,
): Promise<ImpactPage> {
  const { id, organisationId } = prompt
  await rollup.catchUp(id)
  const read = (sql: Sql) => (query.pair ? readPair(sql, id, query.pair, query.margin) : readPage(sql, id, query))
  return db.transaction(read, { tenant: organisationId }, 'repeatable read')
}

async function readPage(sql: Sql, promptId: number, query: ImpactQuery): Promise<ImpactPage> {
  const action = query.action ?? liveActions
  const { totalCount, entries } = await readEntries(sql, promptId, { ...query, action }, true)
  return { totalCount, data: await readImpacts(sql, promptId, entries, query.margin) }
}

async function readPair(sql: Sql, promptId: number, pair: Pair, margin: number): Promise<ImpactPage> {
  const found = await selectChangesById(sql, promptId, [pair.base, pair.head])
  const changes = (['head', 'base'] as const).map((path) => {
    const change = found.find(({ id }) => id === pair[path])
    const message = 'must be the id of a history entry of this prompt that is deployed or pr_merged'
    if (!change) throw invalidQuery({ path, message })
    return change
  })
  return { totalCount: 2, data: await readImpacts(sql, promptId, changes, margin, pair) }
}

/** Compares each of these changes of a prompt with the one before it, or only the head of a pair with its base. */
export async function readImpacts(
  sql: Sql,
  promptId: number,
  changes: ChangeRow[],
  margin: number,
  pair?: Pair,
): Promise<Impact[]> {
  if (changes.length === 0) return []
  const found = await selectWindows(
    sql,
    changes.map(({ id }) => id),
  )
  const bounds = boundsOf(found)
  const [inWindows, named] = await Promise.all([
    selectSpanCounts(sql, [promptId], bounds),
    selectNamedCounts(sql, promptId, bounds),
  ])
  const counts = attribute(found, inWindows, named)
  const windows = new Map(found.map((window) => [window.id, window]))
  return changes.map((change) => {
    const window = windows.get(change.id) as ChangeWindow
    const beforeId = pair ? (change.id === pair.head ? pair.base : null) : window.before_id
    const before = beforeId === null ? null : (counts.get(beforeId) as ChangeCounts)
    return describeChange(change, window, counts.get(change.id) as ChangeCounts, before, margin)
  })
}

function describeChange(
  change: ChangeRow,
  { created_at, live_until }: ChangeWindow,
  counts: ChangeCounts,
  before: ChangeCounts | null,
  margin: number,
): Impact {
  const { positive, negative, by_commit } = counts
  const compared = before && compare(before, counts, margin)
  const total = totalOf(counts)
  return {
    change: showEntry(change),
    window: { from: created_at.toISOString(), until: live_until?.toISOString() ?? null },
    signals: { positive, negative, total, by_commit, by_time: total - by_commit },
    rate: rateOf(counts),
    difference: compared?.difference ?? null,
    verdict: compared?.verdict ?? null,
    signals_needed: compared?.signalsNeeded ?? null,
  }
}
