import type { Db, Sql } from '../db/client.ts'
import { showEntry } from '../history/read.ts'
import { offsetOf } from '../lib/numbered_page.ts'
import { invalidQuery } from '../lib/params.ts'
import type { Prompt } from '../prompts/find.ts'
import { selectSpanCounts } from '../stats/read.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { attribute, boundsOf, type ChangeCounts, type ChangeWindow } from './attribute.ts'
import { compare } from './compare.ts'
import { rateOf, totalOf } from './rate.ts'
import type { Impact } from './schema.ts'
import type { ImpactQuery, Pair } from './schema_params.ts'
import {
  type ChangeRow,
  countChanges,
  selectChanges,
  selectChangesById,
  selectNamedCounts,
  selectWindows,
} from './store.ts'

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
  const [totalCount, changes] = await Promise.all([
    countChanges(sql, promptId, query),
    selectChanges(sql, promptId, query, offsetOf(query), query.limit),
  ])
  return { totalCount, data: await readImpacts(sql, promptId, changes, query.margin) }
}

async function readPair(sql: Sql, promptId: number, { base, head }: Pair, margin: number): Promise<ImpactPage> {
  const found = await selectChangesById(sql, promptId, [base, head])
  const requireChange = (path: keyof Pair, id: number): ChangeRow => {
    const change = found.find((row) => row.id === id)
    if (change) return change
    const message = 'must be the id of a history entry of this prompt that is deployed or pr_merged'
    throw invalidQuery({ path, message })
  }
  const earlier = requireChange('base', base)
  const later = { ...requireChange('head', head), before_id: base }
  return { totalCount: 2, data: await readImpacts(sql, promptId, [later, earlier], margin) }
}

/** Compares each of these changes of a prompt with the one before it. */
export async function readImpacts(sql: Sql, promptId: number, changes: ChangeRow[], margin: number): Promise<Impact[]> {
  const ids = new Set(changes.flatMap(({ id, before_id }) => (before_id === null ? [id] : [id, before_id])))
  if (ids.size === 0) return []
  const windows = await selectWindows(sql, [...ids])
  const bounds = boundsOf(windows)
  const [inWindows, named] = await Promise.all([
    selectSpanCounts(sql, [promptId], bounds),
    selectNamedCounts(sql, promptId, bounds),
  ])
  const counts = attribute(windows, inWindows, named)
  const windowOf = new Map(windows.map((window) => [window.id, window]))
  return changes.map((change) => {
    const before = change.before_id === null ? null : (counts.get(change.before_id) as ChangeCounts)
    return describeChange(
      change,
      windowOf.get(change.id) as ChangeWindow,
      counts.get(change.id) as ChangeCounts,
      before,
      margin,
    )
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
