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
    // Of two in one batch, the second is a replay of the first.
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

/** Where an entry was read: in a clone, or in a delivery of GitHub's. */
export type Source = 'git' | 'github'

type EntryToReconcile = EntryToRecord & { source: Source; covers: string[] }

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
  const at = (places: number[] = []) => new Set(places.map((place) => entries[place - 1] as EntryToRecord))
  return { changed: at(row?.changed), present: at(row?.present), covered: at(row?.covered) }
}

export async function openBatch(sql: Sql): Promise<number> {
  const [row] = await sql<{ batch: number }>`select nextval('history_batches') as batch`
  return row?.batch as number
}

/** Adds entries to a batch, which is invisible until it is recorded. */
export async function addToBatch(sql: Sql, batch: number, first: number, entries: EntryToRecord[]): Promise<void> {
  await sql`
    insert into history_incoming
    select ${batch}, ${first} + e.item, e.prompt_id::bigint, e.action, e.user_name, e.user_email, e.commit_sha,
      e.branch_name, e.pr_number::integer, e.pr_url, e.created_at::timestamptz
    from unnest(
      ${entries.map((entry) => String(entry.prompt_id))}::text[],
      ${entries.map((entry) => entry.action)}::text[],
      ${entries.map((entry) => entry.user_name)}::text[],
      ${entries.map((entry) => entry.user_email)}::text[],
      ${entries.map((entry) => entry.commit_sha)}::text[],
      ${entries.map((entry) => entry.branch_name)}::text[],
      ${entries.map((entry) => (entry.pr_number === null ? null : String(entry.pr_number)))}::text[],
      ${entries.map((entry) => entry.pr_url)}::text[],
      ${entries.map((entry) => entry.created_at.toISOString())}::text[]
    ) with ordinality e (
      prompt_id, action, user_name, user_email, commit_sha, branch_name, pr_number, pr_url, created_at, item
    )`
}

/** Moves a batch into the histories, and returns how many of its entries were new. */
export async function recordBatch(sql: Sql, batch: number): Promise<number> {
  // Without knowing how many rows there are, the planner would compare each with each.
  await sql`analyze history_incoming, history_entries`
  await sql`set local work_mem = '64MB'`
  const [row] = await sql<{ added: number }>`select added from record_history_batch(${batch})`
  await sql`delete from history_incoming where batch = ${batch}`
  return row?.added ?? 0
}
