import type { Sql } from '../db/client.ts'
import type { OwnedPrompt, PromptFile } from '../prompts/find.ts'
import type { KnownEntry } from './identity.ts'
import type { EntryRow } from './schema.ts'

/** The state of a history. The version is random and changes with every change: equal versions mean equal pages. */
export type HistoryState = StateKey & OwnedPrompt & { version: string }

/** `prompt` has the shape of a public id. */
export type StateKey = { organisationId: number; prompt: string }

/** Returns one text, which is faster to write and to parse than a row or a JSON object per prompt. */
export async function selectStates(sql: Sql, prompts: string[]): Promise<HistoryState[]> {
  const [row] = await sql<{ states: string | null }>`
    select string_agg(concat_ws(' ', organisation_id, id, public_id, history_version), ',') as states
    from prompts
    where public_id = any (${`{${prompts}}`}::text::text[])`
  const states = row?.states?.split(',') ?? []
  return states.map((state) => {
    const [organisationId, id, prompt, version] = state.split(' ') as [string, string, string, string]
    return { organisationId: Number(organisationId), id: Number(id), prompt, version }
  })
}

/** Times are in ISO 8601, or -infinity and infinity. */
type PageToSelect = { offset: number; size: number; since: string; until: string }

type SelectedPage = { version: string; totalCount: number; entries: EntryRow[] }

type PageRow = EntryRow & { version: string; total_count: number }

/**
 * Selects a page, its total and its version from one snapshot; undefined for a prompt that does not exist. It walks from
 * the nearest rank, so that a page costs the same at any depth. Each look-up has the order of one index and a limit: without
 * them Postgres expects a third of the table and scans it.
 */
export async function selectPage(
  sql: Sql,
  { id, organisationId }: OwnedPrompt,
  page: PageToSelect,
): Promise<SelectedPage | undefined> {
  const rows = await sql<PageRow>`
    with bounds as materialized (
      select p.id, p.organisation_id, p.history_version, p.history_count, low.rank as low, high.rank as high
      from prompts p
      cross join lateral (
        select count_history_before(
          p.organisation_id, p.id, p.history_count, ${page.since}::text::timestamptz
        ) as rank
      ) low
      cross join lateral (
        select count_history_before(
          p.organisation_id, p.id, p.history_count, ${page.until}::text::timestamptz + interval '1 microsecond'
        ) as rank
      ) high
      where p.organisation_id = ${organisationId} and p.id = ${id}
    ), page as materialized (
      select b.*, b.high - ${page.offset}::bigint as ends_before
      from bounds b
    )
    select
      p.history_version as version, greatest(p.high - p.low, 0) as total_count, h.*
    from page p
    left join lateral (
      select r.created_at, r.entry_id, r.rank
      from history_ranks r
      where r.organisation_id = p.organisation_id and r.prompt_id = p.id and r.rank >= p.ends_before
      order by r.rank
      limit 1
    ) ranked on true
    left join lateral (
      select h.*
      from history_rows h
      where h.organisation_id = p.organisation_id and h.prompt_id = p.id and p.ends_before > p.low
        and (h.created_at, h.id)
          < (coalesce(ranked.created_at, 'infinity'), coalesce(ranked.entry_id, 9223372036854775807))
      order by h.created_at desc, h.id desc
      offset greatest(coalesce(ranked.rank, p.history_count) - p.ends_before, 0)
      limit least(${page.size}, greatest(p.ends_before - p.low, 0))
    ) h on true
    order by h.created_at desc, h.id desc`
  return toPage(rows)
}

/**
 * Selects a page of the entries of these actions, on one branch unless it is null. Counts all of them. `union all`
 * is deliberate: with `or`, the generic plan would not use the index by branch.
 */
export async function selectFilteredPage(
  sql: Sql,
  { id, organisationId }: OwnedPrompt,
  page: PageToSelect,
  actions: string[],
  branch: string | null,
): Promise<SelectedPage | undefined> {
  const rows = await sql<PageRow>`
    with matching as not materialized (
      select h.*
      from history_rows h
      where h.organisation_id = ${organisationId} and h.prompt_id = ${id} and h.branch_name = ${branch}
        and h.action = any(${actions}::text[])
        and h.created_at >= ${page.since}::text::timestamptz
        and h.created_at <= ${page.until}::text::timestamptz
      union all
      select h.*
      from history_rows h
      where ${branch}::text is null and h.organisation_id = ${organisationId} and h.prompt_id = ${id}
        and h.action = any(${actions}::text[])
        and h.created_at >= ${page.since}::text::timestamptz
        and h.created_at <= ${page.until}::text::timestamptz
    )
    select
      p.history_version as version, (select count(*) from matching) as total_count, h.*
    from prompts p
    left join lateral (
      select * from matching
      order by created_at desc, id desc
      offset ${page.offset}::bigint limit ${page.size}
    ) h on true
    where p.organisation_id = ${organisationId} and p.id = ${id}
    order by h.created_at desc, h.id desc`
  return toPage(rows)
}

function toPage([first, ...others]: PageRow[]): SelectedPage | undefined {
  if (!first) return undefined
  // An empty page is one row without an entry.
  const entries = first.id === null ? [] : [first, ...others]
  return { version: first.version, totalCount: first.total_count, entries }
}

/**
 * Selects an entry, its text and the id of the change before it. Another entry of its commit may have the text: a rollback,
 * or a deploy that a client recorded beside the merge.
 */
export async function selectEntryWithText(sql: Sql, { id: promptId, organisationId }: OwnedPrompt, id: number) {
  const [row] = await sql<EntryRow & { text: string | null; before_id: number | null }>`
    select
      h.*,
      (
        select t.text from history_entries t
        where t.organisation_id = h.organisation_id and t.prompt_id = h.prompt_id
          and lower(t.commit_sha) = lower(h.commit_sha) and t.text is not null
        order by t.id <> h.id
        limit 1
      ) as text,
      (
        select b.id
        from history_changes b
        where b.organisation_id = h.organisation_id and b.prompt_id = h.prompt_id and (b.created_at, b.id) < (h.created_at, h.id)
        order by b.created_at desc, b.id desc
        limit 1
      ) as before_id
    from history_rows h
    where h.organisation_id = ${organisationId} and h.prompt_id = ${promptId} and h.id = ${id}`
  return row
}

/** Finds the prompt of an entry for an operator. */
export async function findEntry(sql: Sql, id: number) {
  const [row] = await sql<{ org: string; organisationId: number; publicId: string }>`
    select o.public_id as org, o.id as "organisationId", p.public_id as "publicId"
    from organisations o
    join history_entries h on h.organisation_id = o.id and h.id = ${id}
    join prompts p on p.organisation_id = h.organisation_id and p.id = h.prompt_id`
  return row
}

export const selectEntries = (sql: Sql, organisationId: number, ids: number[]) =>
  sql<KnownEntry>`
    select * from history_rows
    where organisation_id = ${organisationId} and id = any (${ids.map(String)}::text[]::bigint[])`

/** Entries of these actions on a branch, or that were added for a file. Null stands for any. */
export type EntriesOf = { promptId: number | null; branch: string | null; file: PromptFile | null }

export const selectEntriesOf = (
  sql: Sql,
  organisationId: number,
  { promptId, branch, file }: EntriesOf,
  actions: string[],
) =>
  sql<{ id: number; prompt_id: number }>`
    select id, prompt_id from history_entries
    where organisation_id = ${organisationId} and action = any(${actions}::text[])
      and (${promptId}::bigint is null or prompt_id = ${promptId}::bigint)
      and (${branch}::text is null or branch_name = ${branch}::text)
      and (${file?.path ?? null}::text is null or (repository, path) = (${file?.repository ?? null}::text, ${file?.path ?? null}::text))
    order by prompt_id, id`

export const selectNewestEntries = (sql: Sql, { id, organisationId }: OwnedPrompt, limit: number) =>
  sql<KnownEntry>`
    select * from history_rows
    where organisation_id = ${organisationId} and prompt_id = ${id}
    order by created_at desc, id desc
    limit ${limit}`

/**
 * Whether the organisation stores texts, and its public id. The setting changes only after the caller's transaction, so that
 * none is left of a batch that began before it was turned off.
 */
export async function lockStoringTexts(sql: Sql, organisationId: number) {
  const [row] = await sql<{ isOn: boolean; org: string }>`
    select store_text as "isOn", public_id as org from organisations where id = ${organisationId} for share`
  return row ?? { isOn: false, org: 'ORG' }
}
