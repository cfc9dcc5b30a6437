import type { Sql } from '../db/client.ts'
import type { showTitledEntry } from '../history/read.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { SplitBounds } from './bounds.ts'
import type { Counts } from './rate.ts'

/** A commit in lower case as a history entry or a signal has it. */
export type KnownCommit = { text: string; is_entry: boolean }

type Entry = Parameters<typeof showTitledEntry>[0]

/**
 * The commits of a prompt's history and signals that begin with one of these 7 characters. Clients may make up any number,
 * so at most `limit` of the signals are read per beginning.
 */
export const selectKnownCommits = (sql: Sql, { id, organisationId }: OwnedPrompt, begins: string[], limit: number) =>
  sql<KnownCommit>`
    select text, bool_or(is_entry) as is_entry
    from (
      select lower(h.commit_sha) as text, true as is_entry
      from unnest(${begins}::text[]) given (begin)
      cross join lateral (
        select h.commit_sha
        from history_entries h
        where h.organisation_id = ${organisationId} and h.prompt_id = ${id}
          and lower(h.commit_sha) >= given.begin and lower(h.commit_sha) < given.begin || chr(1114111)
        -- Makes Postgres search by commit, also where the table was small when it last looked.
        offset 0
      ) h
      union all
      select c.commit_sha, false
      from unnest(${begins}::text[]) given (begin)
      cross join lateral (
        select distinct c.commit_sha
        from signal_commit_counts c
        where c.organisation_id = ${organisationId} and c.prompt_id = ${id} and c.minutes = 1440
          and c.commit_sha >= given.begin and c.commit_sha < given.begin || chr(1114111)
        order by c.commit_sha
        limit ${limit}
      ) c
      union all
      select commit_of_signal(s.metadata), false
      from signals s
      where s.organisation_id = ${organisationId} and s.prompt_id = ${id} and left(commit_of_signal(s.metadata), 7) = any(${begins}::text[])
        and s.id between (
          select coalesce(max(w.last_rolled_up_id), 0) + 1 from signal_watermarks w where w.organisation_id = ${organisationId} and w.prompt_id = ${id}
        ) and 9223372036854775807
    ) known
    group by text`

/** The newest history entry with one of these commits in lower case, one that went live if there is one. */
export async function selectEntryOfCommit(
  sql: Sql,
  { id, organisationId }: OwnedPrompt,
  commits: string[],
): Promise<Entry | undefined> {
  const [entry] = await sql<Entry>`
    select h.*
    from history_entries h
    where h.organisation_id = ${organisationId} and h.prompt_id = ${id} and lower(h.commit_sha) = any(${commits}::text[])
    order by h.action in ('deployed', 'pr_merged') desc, h.created_at desc, h.id desc
    limit 1`
  return entry
}

/** Counts the signals of a prompt between two bounds that name one of these commits, by commit and by day, UTC. */
export const selectCommitDays = (
  sql: Sql,
  { id, organisationId }: OwnedPrompt,
  commits: string[],
  split: SplitBounds,
) =>
  sql<Counts & { text: string; day: string }>`
    with given as materialized (
      select
        ${commits}::text[] as commits,
        ${split.bounds}::text[]::timestamptz[] as bounds,
        ${split.days}::text[]::timestamptz[] as split_days,
        ${split.quarters}::text[]::timestamptz[] as split_quarters,
        (select coalesce(max(last_rolled_up_id), 0) from signal_watermarks where organisation_id = ${organisationId} and prompt_id = ${id}) as watermark
    ), counts as (
      select c.commit_sha as text, c.start as at, c.positive, c.negative
      from given g
      cross join lateral unnest(g.commits) one (text)
      join signal_commit_counts c
        on c.organisation_id = ${organisationId} and c.prompt_id = ${id} and c.minutes = 1440 and c.commit_sha = one.text and c.start <> all(g.split_days)
      union all
      select c.commit_sha, c.start, c.positive, c.negative
      from given g
      cross join lateral unnest(g.commits) one (text)
      cross join lateral unnest(g.split_days) split (day)
      join signal_commit_counts c
        on c.organisation_id = ${organisationId} and c.prompt_id = ${id} and c.minutes = 15 and c.commit_sha = one.text
        and c.start >= split.day and c.start < split.day + interval '24 hours' and c.start <> all(g.split_quarters)
      union all
      select edge.text, edge.at, edge.positive, edge.negative
      from given g
      cross join lateral unnest(g.split_quarters) split (quarter)
      cross join lateral (
        select
          commit_of_signal(s.metadata) as text, s.created_at as at,
          count(*) filter (where s.value = 'positive') as positive,
          count(*) filter (where s.value = 'negative') as negative
        from signals s
        where s.organisation_id = ${organisationId} and s.prompt_id = ${id} and s.id <= g.watermark
          and s.created_at >= split.quarter and s.created_at < split.quarter + interval '15 minutes'
        group by 1, 2
      ) edge
      union all
      select
        commit_of_signal(s.metadata), s.created_at, (s.value = 'positive')::integer, (s.value = 'negative')::integer
      from given g
      join signals s on s.organisation_id = ${organisationId} and s.prompt_id = ${id} and s.id between g.watermark + 1 and 9223372036854775807
    )
    select
      c.text, to_char(c.at at time zone 'UTC', 'YYYY-MM-DD') as day, sum(c.positive)::bigint as positive,
      sum(c.negative)::bigint as negative
    from given g
    join counts c on c.text = any(g.commits) and c.at >= g.bounds[1] and c.at < g.bounds[2]
    group by 1, 2
    having sum(c.positive) + sum(c.negative) > 0`
