import type { Sql } from '../db/client.ts'
import type { showTitledEntry } from '../history/read.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { ChangeWindow, NamedCount } from './attribute.ts'
import type { SplitBounds } from './bounds.ts'

/** A history entry that went live, and its window. */
export type Change = Parameters<typeof showTitledEntry>[0] & ChangeWindow

/** The live change of each of these prompts. */
export const selectLiveChanges = (sql: Sql, organisationId: number, promptIds: number[]) =>
  sql<{ prompt_id: number; id: number; created_at: Date }>`
    select p.id as prompt_id, h.id, h.created_at
    from unnest(${promptIds.map(String)}::text[]::bigint[]) p (id)
    cross join lateral (
      select h.id, h.created_at
      from history_changes h
      where h.organisation_id = ${organisationId} and h.prompt_id = p.id
      order by h.created_at desc, h.id desc
      limit 1
    ) h`

/** The live change of each of these prompts, and the newest ones that went live from `since` on, at most `limit` of each. */
export const selectRecentChanges = (
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  since: Date,
  limit: number,
) =>
  sql<{ promptId: number; id: number }>`
    select p.id as "promptId", h.id
    from unnest(${promptIds.map(String)}::text[]::bigint[]) p (id)
    cross join lateral (
      (
        select h.id
        from history_changes h
        where h.organisation_id = ${organisationId} and h.prompt_id = p.id
        order by h.created_at desc, h.id desc
        limit 1
      )
      union
      (
        select h.id
        from history_changes h
        where h.organisation_id = ${organisationId} and h.prompt_id = p.id and h.created_at >= ${since}
        order by h.created_at desc, h.id desc
        limit ${limit}
      )
    ) h`

/** Those of these entries that are changes of the prompt, and the changes before them. */
export const selectChanges = (sql: Sql, { id, organisationId }: OwnedPrompt, ids: number[]): Promise<Change[]> =>
  sql<Change>`
    with given as (
      select
        h.id,
        (
          select before.id
          from history_changes before
          where before.organisation_id = h.organisation_id and before.prompt_id = h.prompt_id and (before.created_at, before.id) < (h.created_at, h.id)
          order by before.created_at desc, before.id desc
          limit 1
        ) as before_id
      from history_changes h
      where h.id = any(${ids.map(String)}::text[]::bigint[]) and h.organisation_id = ${organisationId} and h.prompt_id = ${id}
    )
    select
      h.id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number, h.pr_url, h.created_at,
      h.title, w.before_id,
      (
        select later.created_at
        from history_changes later
        where later.organisation_id = h.organisation_id and later.prompt_id = h.prompt_id and (later.created_at, later.id) > (h.created_at, h.id)
        order by later.created_at, later.id
        limit 1
      ) as live_until,
      h.commit_key,
      (
        select h.created_at
        from history_changes earlier
        where earlier.organisation_id = h.organisation_id and earlier.prompt_id = h.prompt_id and earlier.commit_key = h.commit_key
          and (earlier.created_at, earlier.id) < (h.created_at, h.id)
        limit 1
      ) as named_from,
      (
        select later.created_at
        from history_changes later
        where later.organisation_id = h.organisation_id and later.prompt_id = h.prompt_id and later.commit_key = h.commit_key
          and (later.created_at, later.id) > (h.created_at, h.id)
        order by later.created_at, later.id
        limit 1
      ) as named_until
    from (
      select id, before_id from given
      union all
      select before_id, null from given where before_id not in (select id from given)
    ) w
    join history_changes h on h.id = w.id`

/** How many longer hashes in signals count for the short one of a change: clients may make up any number. */
const maxLongerHashes = 100

/**
 * Counts the signals of a prompt by the span between two bounds, by day, and by the string that they have for a commit. Reads
 * only strings that can name a change, because clients may make up any number of others. These are prefixes of its commit, so
 * they sort between its first 7 characters and itself; or, if its commit is a short hash, longer ones. A day that has a bound in
 * it (`split_days`) is read by quarters of an hour, and a quarter that has one from the signals. `longHash` is the pattern of
 * the commits that may be shortened.
 */
export const selectNamedCounts = (
  sql: Sql,
  { id, organisationId }: OwnedPrompt,
  split: SplitBounds,
  longHash: string,
) =>
  sql<NamedCount>`
    with given as materialized (
      select
        ${split.bounds}::text[]::timestamptz[] as bounds,
        ${split.days}::text[]::timestamptz[] as split_days,
        ${split.quarters}::text[]::timestamptz[] as split_quarters,
        (select coalesce(max(last_rolled_up_id), 0) from signal_watermarks where organisation_id = ${organisationId} and prompt_id = ${id}) as watermark
    ), known as materialized (
      select distinct commit_key from history_changes where organisation_id = ${organisationId} and prompt_id = ${id}
    ), days as materialized (
      select c.commit_sha as text, c.start, c.positive, c.negative
      from known k
      join signal_commit_counts c
        on c.organisation_id = ${organisationId} and c.prompt_id = ${id} and c.minutes = 1440 and c.commit_sha between left(k.commit_key, 7) and k.commit_key
        and starts_with(k.commit_key, c.commit_sha)
      union
      select c.commit_sha, c.start, c.positive, c.negative
      from known k
      cross join lateral (
        select distinct l.commit_sha
        from signal_commit_counts l
        where l.organisation_id = ${organisationId} and l.prompt_id = ${id} and l.minutes = 1440
          and l.commit_sha > k.commit_key and l.commit_sha < k.commit_key || 'g'
        order by l.commit_sha
        limit ${maxLongerHashes}
      ) longer
      join signal_commit_counts c
        on c.organisation_id = ${organisationId} and c.prompt_id = ${id} and c.minutes = 1440 and c.commit_sha = longer.commit_sha
      where k.commit_key ~ '^[0-9a-f]{7,63}$' and length(k.commit_key) <> 40
    ), counts as (
      select d.text, width_bucket(d.start, g.bounds) as number, d.start as day, d.positive, d.negative
      from given g
      join days d on d.start <> all(g.split_days)
      union all
      select d.text, q.number, d.start, q.positive, q.negative
      from given g
      join days d on d.start = any(g.split_days)
      cross join lateral (
        select width_bucket(q.start, g.bounds) as number, sum(q.positive) as positive, sum(q.negative) as negative
        from signal_commit_counts q
        where q.organisation_id = ${organisationId} and q.prompt_id = ${id} and q.minutes = 15 and q.commit_sha = d.text
          and q.start >= d.start and q.start < d.start + interval '24 hours' and q.start <> all(g.split_quarters)
        group by 1
      ) q
      union all
      select edge.text, edge.number, floor_minutes(quarter.start, 1440), edge.positive, edge.negative
      from given g
      cross join lateral unnest(g.split_quarters) quarter (start)
      cross join lateral (
        select
          commit_of_signal(s.metadata) as text, width_bucket(s.created_at, g.bounds) as number,
          count(*) filter (where s.value = 'positive') as positive,
          count(*) filter (where s.value = 'negative') as negative
        from signals s
        where s.organisation_id = ${organisationId} and s.prompt_id = ${id} and s.id <= g.watermark
          and s.created_at >= quarter.start and s.created_at < quarter.start + interval '15 minutes'
        group by 1, 2
      ) edge
      union all
      select
        commit_of_signal(s.metadata), width_bucket(s.created_at, g.bounds), floor_minutes(s.created_at, 1440),
        (s.value = 'positive')::integer, (s.value = 'negative')::integer
      from given g
      join signals s on s.organisation_id = ${organisationId} and s.prompt_id = ${id} and s.id between g.watermark + 1 and 9223372036854775807
    ), named as (
      select
        text, number, to_char(day at time zone 'UTC', 'YYYY-MM-DD') as day, sum(positive)::bigint as positive,
        sum(negative)::bigint as negative
      from counts
      where text is not null
      group by text, number, day
    )
    select n.text, n.number, n.day, n.positive, n.negative, c.commits
    from named n
    join (
      select t.text, json_agg(distinct k.commit_key) as commits
      from (select distinct text from named) t
      cross join lateral (
        (select h.commit_key from history_changes h where h.organisation_id = ${organisationId} and h.prompt_id = ${id} and h.commit_key = t.text limit 1)
        union all
        (
          select h.commit_key
          from history_changes h
          where h.organisation_id = ${organisationId} and h.prompt_id = ${id} and h.commit_key > t.text and h.commit_key < t.text || 'g'
            and h.commit_key ~ ${longHash}
          order by h.commit_key
          limit 1
        )
        union all
        (
          select h.commit_key
          from history_changes h
          where h.organisation_id = ${organisationId} and h.prompt_id = ${id} and h.commit_key > t.text and h.commit_key < t.text || 'g'
            and h.commit_key ~ ${longHash}
          order by h.commit_key desc
          limit 1
        )
        union all
        (
          select distinct h.commit_key
          from history_changes h
          where h.organisation_id = ${organisationId} and h.prompt_id = ${id} and h.commit_key >= left(t.text, 7) and h.commit_key < t.text
            and starts_with(t.text, h.commit_key) and t.text ~ ${longHash}
          order by h.commit_key
          limit 2
        )
      ) k
      group by t.text
    ) c using (text)`
