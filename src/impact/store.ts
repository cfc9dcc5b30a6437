import type { Sql } from '../db/client.ts'
import type { Action } from '../history/schema.ts'

/** A history entry that went live, with the signals that belong to it. */
export type ChangeRow = {
  id: number
  action: Action
  user_name: string
  user_email: string
  commit_sha: string
  branch_name: string
  pr_number: number | null
  pr_url: string | null
  created_at: Date
  /** Null for the change that is live. */
  live_until: Date | null
  positive: number
  negative: number
  by_commit: number
}

/** The changes of a prompt, newest first, from one snapshot with their number and their signals. */
export async function selectChanges(
  sql: Sql,
  promptId: number,
  skipped: number,
  size: number,
): Promise<{ totalCount: number; changes: ChangeRow[] }> {
  const rows = await sql<ChangeRow & { total_count: number }>`
    with total as materialized (
      select sum(n.number)::bigint as number
      from (values ('deployed'), ('pr_merged')) live (action)
      cross join lateral (
        select count(*) as number
        from history_entries h
        where h.prompt_id = ${promptId} and h.action = live.action
      ) n
    ), page as materialized (
      select h.*
      from (values ('deployed'), ('pr_merged')) live (action)
      cross join lateral (
        select h.*
        from history_entries h
        where h.prompt_id = ${promptId} and h.action = live.action
        order by h.created_at desc, h.id desc
        limit ${skipped}::bigint + ${size}::bigint
      ) h
      order by h.created_at desc, h.id desc
      offset ${skipped}::bigint limit ${size}::bigint
    )
    select
      t.number as total_count, h.id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number,
      h.pr_url, h.created_at, h.live_until, h.positive, h.negative, h.by_commit
    from total t
    left join (
      select p.*, c.live_until, c.positive, c.negative, c.by_commit
      from page p
      join count_changes(${promptId}, array(select id from page)) c on c.entry_id = p.id
    ) h on true
    order by h.created_at desc, h.id desc`
  const changes = rows[0]?.id === null ? [] : rows.map(({ total_count: _, ...change }) => change)
  return { totalCount: rows[0]?.total_count ?? 0, changes }
}

/** Those of these entries that are changes of the prompt, with their signals, in no order. */
export const selectChangesById = (sql: Sql, promptId: number, ids: number[]): Promise<ChangeRow[]> =>
  sql<ChangeRow>`
    with given as materialized (
      select h.*
      from unnest(${ids.map(String)}::text[]::bigint[]) given (id)
      cross join lateral (select h.* from history_entries h where h.id = given.id limit 1) h
      where h.prompt_id = ${promptId} and h.action in ('deployed', 'pr_merged')
    )
    select
      h.id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number, h.pr_url, h.created_at,
      c.live_until, c.positive, c.negative, c.by_commit
    from given h
    join count_changes(${promptId}, array(select id from given)) c on c.entry_id = h.id`

/** What the list of prompts shows of one. */
export type PromptSummary = {
  prompt: string
  /** The last two changes, the live one first; times are texts. */
  changes: (Omit<ChangeRow, 'created_at' | 'live_until'> & { created_at: string; live_until: string | null })[] | null
  /** The positive and negative signals of the spans that have any, by the number of the span, from 1. */
  spans: [number: number, positive: number, negative: number][] | null
}

/** The ids that these prompts of an organisation have in the tables. */
export async function selectPromptIds(sql: Sql, organisationId: number, prompts: string[]): Promise<number[]> {
  const rows = await sql<{ id: number }>`
    select id from find_prompts(${prompts}::text[]) where organisation_id = ${organisationId}`
  return rows.map(({ id }) => id)
}

/** The last two changes of each of these prompts, and its signals between each two of the bounds. */
export const selectSummaries = (
  sql: Sql,
  organisationId: number,
  prompts: string[],
  bounds: Date[],
): Promise<PromptSummary[]> =>
  sql<PromptSummary>`
    select p.public_id as prompt, changes.list as changes, spans.list as spans
    from find_prompts(${prompts}::text[]) p
    cross join lateral (
      with last as materialized (
        select h.*
        from (values ('deployed'), ('pr_merged')) live (action)
        cross join lateral (
          select h.*
          from history_entries h
          where h.prompt_id = p.id and h.action = live.action
          order by h.created_at desc, h.id desc
          limit 2
        ) h
        order by h.created_at desc, h.id desc
        limit 2
      )
      select json_agg(json_build_object(
        'id', l.id, 'action', l.action, 'user_name', l.user_name, 'user_email', l.user_email,
        'commit_sha', l.commit_sha, 'branch_name', l.branch_name, 'pr_number', l.pr_number, 'pr_url', l.pr_url,
        'created_at', l.created_at, 'live_until', c.live_until, 'positive', c.positive, 'negative', c.negative,
        'by_commit', c.by_commit
      ) order by l.created_at desc, l.id desc) as list
      from last l
      join count_changes(p.id, array(select id from last)) c on c.entry_id = l.id
    ) changes
    cross join lateral (
      select json_agg(json_build_array(s.number, s.positive, s.negative)) as list
      from count_signals_between(p.id, ${bounds.map((bound) => bound.toISOString())}::text[]::timestamptz[]) s
    ) spans
    where p.organisation_id = ${organisationId}`
