import type { Sql } from '../db/client.ts'
import type { Action } from './schema.ts'

export type EntryRow = {
  id: number
  action: Action
  user_name: string
  user_email: string
  commit_sha: string
  branch_name: string
  pr_number: number | null
  pr_url: string | null
  created_at: Date
}

export type EntryToRecord = Omit<EntryRow, 'id'> & { prompt_id: number }

/** A history as a look-up found it. The version is random and new with every change: equal ones mean equal pages. */
export type HistoryState = { organisationId: number; promptId: number; prompt: string; version: string }

export const selectStates = (sql: Sql, asked: { organisationId: string; prompt: string }[]): Promise<HistoryState[]> =>
  sql<HistoryState>`
    select organisation_id as "organisationId", id as "promptId", public_id as prompt, history_version as version
    from find_prompts(
      ${asked.map(({ organisationId }) => organisationId)}::text[]::bigint[],
      ${asked.map(({ prompt }) => prompt)}::text[]
    )`

export type PageToSelect = {
  number: number
  size: number
  /** ISO 8601, or -infinity and infinity. */
  since: string
  until: string
}

export type SelectedPage = { version: string; totalCount: number; entries: EntryRow[] }

type PageRow = EntryRow & { version: string; total_count: number }

/**
 * One page, its total and its version, from one snapshot; undefined when there is no such prompt. Numbered by time, it
 * is a range whatever the depth. Postgres would guess a range to be a ninth of all: only with a limit, and the bounds
 * found first, does it read no more.
 */
export async function selectPage(sql: Sql, promptId: number, page: PageToSelect): Promise<SelectedPage | undefined> {
  const rows = await sql<PageRow>`
    with bounds as materialized (
      select p.id, p.history_version,
        coalesce((
          select h.seq from history_entries h
          where h.prompt_id = p.id and h.created_at < ${page.since}::text::timestamptz
          order by h.created_at desc, h.id desc limit 1
        ), 0) as low,
        coalesce((
          select h.seq from history_entries h
          where h.prompt_id = p.id and h.created_at <= ${page.until}::text::timestamptz
          order by h.created_at desc, h.id desc limit 1
        ), 0) as high
      from prompts p
      where p.id = ${promptId}
    )
    select
      b.history_version as version, greatest(b.high - b.low, 0) as total_count,
      h.id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number, h.pr_url, h.created_at
    from bounds b
    left join lateral (
      select h.*
      from history_entries h
      where h.prompt_id = b.id
        and h.seq <= b.high - (${page.number}::bigint - 1) * ${page.size}::bigint
        and h.seq > b.low
      order by h.seq desc
      limit ${page.size}
    ) h on true
    order by h.seq desc`
  return toPage(rows)
}

/** The same for entries of some actions, and of one branch unless that is null; an index bounds the cost. */
export async function selectFilteredPage(
  sql: Sql,
  promptId: number,
  page: PageToSelect,
  actions: string[],
  branch: string | null,
): Promise<SelectedPage | undefined> {
  const rows = await sql<PageRow>`
    with matching as (
      select h.*
      from history_entries h
      where h.prompt_id = ${promptId} and h.action = any(${actions}::text[])
        and (${branch}::text is null or h.branch_name = ${branch})
        and h.created_at >= ${page.since}::text::timestamptz
        and h.created_at <= ${page.until}::text::timestamptz
    )
    select
      p.history_version as version, (select count(*) from matching) as total_count,
      h.id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number, h.pr_url, h.created_at
    from prompts p
    left join lateral (
      select * from matching
      order by seq desc
      offset (${page.number}::bigint - 1) * ${page.size}::bigint limit ${page.size}
    ) h on true
    where p.id = ${promptId}
    order by h.seq desc`
  return toPage(rows)
}

function toPage([first, ...others]: PageRow[]): SelectedPage | undefined {
  if (!first) return undefined
  // An empty page is one row without an entry.
  const entries = first.id === null ? [] : [first, ...others]
  return { version: first.version, totalCount: first.total_count, entries }
}

/** Adds entries, or finds those that are there already, in the order given. */
export const insertEntries = (sql: Sql, entries: EntryToRecord[]): Promise<(EntryRow & { is_new: boolean })[]> =>
  sql<EntryRow & { is_new: boolean }>`select * from record_history(${JSON.stringify(entries)}::text::jsonb)`

export async function lockHistories(sql: Sql, promptIds: number[]): Promise<void> {
  await sql`
    select from prompts
    where id = any(${promptIds.map(String)}::text[]::bigint[])
    order by id
    for no key update`
}

export type MergeToRecord = EntryToRecord & { deployed_as: string | null }

/** Makes merges of the direct deploys as which they were told first, on the same branch; how many there were. */
export async function turnIntoMerged(sql: Sql, entries: MergeToRecord[]): Promise<number> {
  const rows = await sql`
    with merged as (
      select given.*
      from jsonb_to_recordset(${JSON.stringify(entries)}::text::jsonb) as given (
        prompt_id bigint, action text, user_name text, user_email text, commit_sha text, branch_name text,
        pr_number integer, pr_url text, deployed_as text
      )
      where given.action = 'pr_merged' and not exists (
        select from history_entries h
        where h.prompt_id = given.prompt_id and h.commit_sha = given.commit_sha and h.action = 'pr_merged'
          and h.pr_number = given.pr_number
      )
    ), turned as (
      update history_entries h
      set
        action = m.action, user_name = m.user_name, user_email = m.user_email, commit_sha = m.commit_sha,
        pr_number = m.pr_number, pr_url = m.pr_url
      from merged m
      where h.prompt_id = m.prompt_id and h.commit_sha = m.deployed_as and h.branch_name = m.branch_name
        and h.action = 'deployed'
      returning h.prompt_id
    )
    update prompts
    set history_version = default
    where id in (select prompt_id from turned)
    returning 1`
  return rows.length
}

export async function openBatch(sql: Sql): Promise<number> {
  const [row] = await sql<{ batch: number }>`select nextval('history_batches') as batch`
  return row?.batch as number
}

/** Adds entries to a batch, which is nowhere to be seen until it is merged. */
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

/** How many entries of the batch were new. */
export async function mergeBatch(sql: Sql, batch: number): Promise<number> {
  // Without knowing how many rows there are, the planner would compare each with each.
  await sql`analyze history_incoming, history_entries`
  await sql`set local work_mem = '64MB'`
  const [row] = await sql<{ added: number }>`select added from merge_history(${batch})`
  await sql`delete from history_incoming where batch = ${batch}`
  return row?.added ?? 0
}
