import type { Sql } from '../db/client.ts'
import type { showEntry } from '../history/read.ts'
import type { Counts } from './rate.ts'

/** A history entry that went live, with the signals that belong to it. */
export type ChangeRow = Parameters<typeof showEntry>[0] &
  Counts & {
    /** Null for the change that is live. */
    live_until: Date | null
    by_commit: number
  }

/** Narrows down the changes; null does not. */
type ChangeFilters = { action: string[] | null; branch: string | null; since: Date | null; until: Date | null }

/** A change, with the signals of the one before it, whatever a filter says of that; null for the first. */
type ListedChange = ChangeRow & { before: Counts | null }

/** The changes of a prompt that filters choose, newest first, from one snapshot with their number and their signals. */
export async function selectChanges(
  sql: Sql,
  promptId: number,
  { action: actions, branch, since, until }: ChangeFilters,
  skipped: number,
  size: number,
): Promise<{ totalCount: number; changes: ListedChange[] }> {
  const rows = await sql<ListedChange & { total_count: number }>`
    with asked as materialized (
      select
        live.action, ${branch}::text as branch, ${since?.toISOString() ?? '-infinity'}::text::timestamptz as since,
        ${until?.toISOString() ?? 'infinity'}::text::timestamptz as until
      from (values ('deployed'), ('pr_merged')) live (action)
      where ${actions}::text[] is null or live.action = any(${actions}::text[])
    ), total as materialized (
      select coalesce(sum(n.number), 0)::bigint as number
      from asked a
      cross join lateral (
        select count(*) as number
        from history_entries h
        where h.prompt_id = ${promptId} and h.action = a.action and h.created_at between a.since and a.until
          and (a.branch is null or h.branch_name = a.branch)
      ) n
    ), page as materialized (
      select h.*, e.id as before_id
      from (
        select h.*
        from asked a
        cross join lateral (
          select h.*
          from history_entries h
          where h.prompt_id = ${promptId} and h.action = a.action and h.created_at between a.since and a.until
            and (a.branch is null or h.branch_name = a.branch)
          order by h.created_at desc, h.id desc
          limit ${skipped}::bigint + ${size}::bigint
        ) h
        order by h.created_at desc, h.id desc
        offset ${skipped}::bigint limit ${size}::bigint
      ) h
      left join lateral changes_before(${promptId}, h.created_at, h.id, 1) e on true
    ), counted as materialized (
      select *
      from count_changes(${promptId}, array(select id from page union select before_id from page))
    )
    select
      t.number as total_count, p.id, p.action, p.user_name, p.user_email, p.commit_sha, p.branch_name, p.pr_number,
      p.pr_url, p.created_at, c.live_until, c.positive, c.negative, c.by_commit,
      case when b.entry_id is not null then json_build_object('positive', b.positive, 'negative', b.negative) end as before
    from total t
    left join page p on true
    left join counted c on c.entry_id = p.id
    left join counted b on b.entry_id = p.before_id
    order by p.created_at desc, p.id desc`
  // The total comes with a row of nulls when the page is empty.
  return { totalCount: rows[0]?.total_count ?? 0, changes: rows.filter(({ id }) => id !== null) }
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
    select id from prompts where public_id = any (${prompts}::text[]) and organisation_id = ${organisationId}`
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
    from prompts p
    cross join lateral (
      with last as materialized (select * from changes_before(p.id, 'infinity', 0, 2))
      select json_agg(to_jsonb(l) || to_jsonb(c) order by l.created_at desc, l.id desc) as list
      from last l
      join count_changes(p.id, array(select id from last)) c on c.entry_id = l.id
    ) changes
    cross join lateral (
      select json_agg(json_build_array(s.number, s.positive, s.negative)) as list
      from count_signals_between(p.id, ${bounds.map((bound) => bound.toISOString())}::text[]::timestamptz[]) s
    ) spans
    where p.public_id = any (${prompts}::text[]) and p.organisation_id = ${organisationId}`

/** When each of these prompts was changed last, of those that have changes. */
export const selectLastChanges = (sql: Sql, promptIds: number[]): Promise<{ id: number; at: Date }[]> =>
  sql<{ id: number; at: Date }>`
    select p.id, max(h.created_at) as at
    from unnest(${promptIds.map(String)}::text[]::bigint[]) p (id)
    cross join (values ('deployed'), ('pr_merged')) live (action)
    cross join lateral (
      select h.created_at
      from history_entries h
      where h.prompt_id = p.id and h.action = live.action
      order by h.created_at desc, h.id desc
      limit 1
    ) h
    group by p.id`

type PromptTotal = { id: number; positive: number; negative: number }

/** The signals of each of these prompts in a span of time, of those that have any. */
export const selectTotals = (sql: Sql, promptIds: number[], since: Date, until: Date): Promise<PromptTotal[]> =>
  sql<PromptTotal>`
    select p.id, s.positive, s.negative
    from unnest(${promptIds.map(String)}::text[]::bigint[]) p (id)
    cross join lateral count_signals_between(p.id, array[${since}::timestamptz, ${until}::timestamptz]) s`
