import type { Sql } from '../db/client.ts'
import type { EntryRow } from './store.ts'

export type EntryToRecord = Omit<EntryRow, 'id'> & { prompt_id: number }

type OfPrompt = { prompt_id: number }

export type RecordedRow = EntryRow & { is_new: boolean }

type Written = {
  call: number
  /** Null when no prompt of the entries exists. */
  recorded: [id: number, promptId: number, action: string, prNumber: number | null, commitSha: string][] | null
  /** The entries that were in the history before. */
  replayed: (Omit<EntryRow, 'created_at'> & { prompt_id: number; created_at: string })[] | null
}

/** What makes two entries the same one. */
const identityOf = ({ prompt_id, action, commit_sha, pr_number }: Omit<EntryToRecord, 'created_at'>): string =>
  `${prompt_id} ${action} ${pr_number} ${commit_sha}`

/** Calls are numbered, so that each result can be matched to its call. */
let calls = 0

/**
 * Adds entries, or finds those that are there already; answers them in the order given, and with undefined for an entry
 * whose prompt does not exist.
 */
export async function insertEntries(sql: Sql, entries: EntryToRecord[]): Promise<(RecordedRow | undefined)[]> {
  const first = new Map(entries.toReversed().map((entry) => [identityOf(entry), entry]))
  const distinct = entries.filter((entry) => first.get(identityOf(entry)) === entry)
  calls += 1
  const call = calls
  const [written] = await sql<Written>`
    select ${call}::bigint as call, recorded, replayed
    from record_history(${promptIdsOf(distinct)}::text::bigint[], ${JSON.stringify(distinct)}::text::json)`
  // The result of another call would show an entry to another organisation.
  if (written?.call !== call) throw new Error('the answer is not to what was asked')
  const rows = new Map<string, RecordedRow>()
  for (const [id, promptId, action, prNumber, commitSha] of written.recorded ?? []) {
    const identity = `${promptId} ${action} ${prNumber} ${commitSha}`
    const { prompt_id: _, ...entry } = first.get(identity) as EntryToRecord
    rows.set(identity, { ...entry, id, is_new: true })
  }
  for (const replayed of written.replayed ?? []) {
    const { prompt_id: _, ...entry } = replayed
    rows.set(identityOf(replayed), { ...entry, created_at: new Date(entry.created_at), is_new: false })
  }
  return entries.map((entry) => {
    const identity = identityOf(entry)
    const row = rows.get(identity)
    // The second of two in one batch is a replay of the first.
    return row && first.get(identity) !== entry ? { ...row, is_new: false } : row
  })
}

/** A Postgres array of each prompt once, in ascending order: locked in this order, no two writers deadlock. */
const promptIdsOf = (entries: OfPrompt[]): string =>
  `{${[...new Set(entries.map((entry) => entry.prompt_id))].sort((a, b) => a - b)}}`

/** Locks the histories of the entries until the end of the transaction. */
export async function lockHistories(sql: Sql, entries: OfPrompt[]): Promise<void> {
  await sql`select lock_histories(${promptIdsOf(entries)}::text::bigint[])`
}

type EntryToReconcile = EntryToRecord & { reopenings: number; in_git: boolean; on_github: boolean; covers: string[] }

/**
 * Reconciles the entries with what another source has recorded of the same changes. Answers by which of them a history
 * has changed, which are in it now, and which are not to be recorded, since a merge covers them.
 */
export async function reconcileEntries(
  sql: Sql,
  entries: EntryToReconcile[],
): Promise<Record<'changed' | 'present' | 'covered', Set<EntryToRecord>>> {
  const [row] = await sql<Record<'changed' | 'present' | 'covered', number[]>>`
    select to_json(changed) as changed, to_json(present) as present, to_json(covered) as covered
    from reconcile_history(${JSON.stringify(entries)}::text::json)`
  const at = (positions: number[] = []) => new Set(positions.map((position) => entries[position - 1] as EntryToRecord))
  return { changed: at(row?.changed), present: at(row?.present), covered: at(row?.covered) }
}

/** Stages entries of an import, the first of them under the given number; they are in no history until they are recorded. */
export async function stageEntries(sql: Sql, first: number, entries: EntryToRecord[]): Promise<void> {
  const items = entries.map((entry, index) => ({ item: first + index, ...entry }))
  await sql`
    insert into history_staging
    select * from json_populate_recordset(null::history_staging, ${JSON.stringify(items)}::text::json)`
}

/** Moves the staged entries into the histories, and returns how many of them were new. */
export async function recordStagedEntries(sql: Sql): Promise<number> {
  // Without knowing how many rows there are, the planner would compare each with each.
  await sql`analyze history_staging, history_entries`
  await sql`set local work_mem = '64MB'`
  const [row] = await sql<{ added: number }>`select added from import_history()`
  return row?.added ?? 0
}
