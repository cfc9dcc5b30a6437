import type { Sql } from '../db/client.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
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
      p.history_version as version, greatest(p.high - p.low, 0) as total_count,
      h.id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number, h.pr_url, h.created_at,
      h.title
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
      from history_entries h
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
      from history_entries h
      where h.organisation_id = ${organisationId} and h.prompt_id = ${id} and h.branch_name = ${branch}
        and h.action = any(${actions}::text[])
        and h.created_at >= ${page.since}::text::timestamptz
        and h.created_at <= ${page.until}::text::timestamptz
      union all
      select h.*
      from history_entries h
      where ${branch}::text is null and h.organisation_id = ${organisationId} and h.prompt_id = ${id}
        and h.action = any(${actions}::text[])
        and h.created_at >= ${page.since}::text::timestamptz
        and h.created_at <= ${page.until}::text::timestamptz
    )
    select
      p.history_version as version, (select count(*) from matching) as total_count,
      h.id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number, h.pr_url, h.created_at,
      h.title
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
