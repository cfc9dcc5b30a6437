import type { Sql } from '../db/client.ts'
import type { EntryRow } from '../history/schema.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { CountRequest, SignalCount } from './attribute.ts'
import type { ImpactQuery } from './schema.ts'
import type { Timeline } from './timeline.ts'

type PageToSelect = Pick<ImpactQuery, 'action' | 'branch' | 'since' | 'until' | 'limit'> & { offset: number }

/** The ids of a page of a prompt's changes, newest first, and how many changes match. */
export async function selectChangePage(sql: Sql, { id, organisationId }: OwnedPrompt, page: PageToSelect) {
  const { action, branch, since, until, limit, offset } = page
  const [row] = await sql<{ totalCount: number; ids: number[] }>`
    with matching as materialized (
      select h.id, h.created_at
      from history_changes h
      where h.organisation_id = ${organisationId} and h.prompt_id = ${id}
        and (${action}::text[] is null or h.action = any(${action}::text[]))
        and (${branch}::text is null or h.branch_name = ${branch})
        and h.created_at >= coalesce(${since}, '-infinity'::timestamptz)
        and h.created_at <= coalesce(${until}, 'infinity'::timestamptz)
    )
    select
      (select count(*) from matching) as "totalCount",
      to_json(array(
        select id from matching
        order by created_at desc, id desc
        offset ${offset}::bigint limit ${limit}
      )) as ids`
  return row as NonNullable<typeof row>
}

/**
 * Selects all changes of these prompts: entries that put another commit live on the live branch (the view history_changes).
 * One value per prompt, because a row for each change would take several times as long.
 */
export const selectTimelines = (sql: Sql, organisationId: number, promptIds: number[]) =>
  sql<{ promptId: number; timeline: Timeline }>`
    select
      prompt_id as "promptId", json_agg(
        json_build_array(id, (extract(epoch from created_at) * 1000)::bigint, commit_key) order by created_at, id
      ) as timeline
    from history_changes
    where organisation_id = ${organisationId} and prompt_id = any(${promptIds.map(String)}::text[]::bigint[])
    group by prompt_id`

export const selectChangeEntries = (sql: Sql, organisationId: number, ids: number[]) =>
  sql<EntryRow & { prompt_id: number }>`
    select * from history_changes
    where organisation_id = ${organisationId} and id = any(${ids.map(String)}::text[]::bigint[])`

/** How many longer hashes in signals count for the short hash of a change. Clients may make up any number. */
const maxLongerHashes = 100

/**
 * Counts signals per prompt, span and day (UTC). A row without a commit counts all signals; a row with one counts those that
 * name it. Only what can name one of `commits` is read, because clients may make up any number of other names. A day with a
 * bound in it is read by quarter hours, a quarter hour with a bound in it from the signals.
 *
 * One statement counts for many prompts, because Postgres takes longer to start it than to count for one.
 */
export const selectSignalCounts = (sql: Sql, organisationId: number, prompts: CountRequest[]) =>
  sql<SignalCount & { promptId: number }>`
    select p.id as "promptId", c.*
    from json_to_recordset(${JSON.stringify(prompts)}::text::json) p (
      id bigint, bounds timestamptz[], split_days timestamptz[], split_quarters timestamptz[],
      commits text[], long text[], short text[], shown text[]
    )
    cross join lateral (
      with mark as materialized (
        select (
          select coalesce(max(last_rolled_up_id), 0)
          from signal_watermarks
          where organisation_id = ${organisationId} and prompt_id = p.id
        ) as watermark
      ), known as materialized (
        select unnest(p.commits) as commit
      ), daily as materialized (
        select null as named_commit, c.start, c.positive, c.negative
        from signal_counts c
        where c.organisation_id = ${organisationId} and c.prompt_id = p.id and c.minutes = 1440
          and c.start >= floor_minutes(p.bounds[1], 1440) and c.start < p.bounds[cardinality(p.bounds)]
        union all
        (
          select c.commit_sha, c.start, c.positive, c.negative
          from (
            select commit from known
            union
            -- A shortened hash sorts between its first 7 characters and itself.
            select s.commit_sha
            from unnest(p.long) long (commit)
            join signal_commit_counts s
              on s.organisation_id = ${organisationId} and s.prompt_id = p.id and s.minutes = 1440
              and s.commit_sha >= left(long.commit, 7) and s.commit_sha < long.commit
              and starts_with(long.commit, s.commit_sha)
            union
            select longer.commit_sha
            from unnest(p.short) short (commit)
            cross join lateral (
              select distinct l.commit_sha
              from signal_commit_counts l
              where l.organisation_id = ${organisationId} and l.prompt_id = p.id and l.minutes = 1440
                -- 'g' sorts after every hexadecimal digit.
                and l.commit_sha > short.commit and l.commit_sha < short.commit || 'g'
              order by l.commit_sha
              limit ${maxLongerHashes}
            ) longer
          ) name (commit)
          cross join lateral (
            select name.commit in (select unnest(p.shown)) or left(name.commit, 7) in (select unnest(p.shown)) as is_shown
          ) asked
          cross join lateral (
            select *
            from signal_commit_counts c
            where c.organisation_id = ${organisationId} and c.prompt_id = p.id and c.minutes = 1440
              and c.commit_sha = name.commit
              and c.start >= case when asked.is_shown then '-infinity' else floor_minutes(p.bounds[1], 1440) end
              and c.start < case when asked.is_shown then 'infinity' else p.bounds[cardinality(p.bounds)] end
            -- Makes Postgres search for each name, rather than read all names.
            offset 0
          ) c
        )
      ), unrolled as materialized (
        -- Normalises the commit once per group, because for each signal it would take longer than finding the signal. Clients
        -- may name another commit with every signal, so only those that may be known are normalised.
        select
          case
            when lower(left((s.commit #>> '{}') collate "C", 7)) in (select left(commit, 7) from known)
            then commit_of_signal(jsonb_build_object('commit_sha', s.commit))
          end as named_commit,
          s.number, s.day, s.positive, s.negative
        from (
          select
            s.metadata -> 'commit_sha' as commit, width_bucket(s.created_at, p.bounds) as number,
            floor_minutes(s.created_at, 1440) as day, count(*) filter (where s.value = 'positive') as positive,
            count(*) filter (where s.value = 'negative') as negative
          from mark m
          cross join lateral (
            select edge.*
            from unnest(p.split_quarters) quarter (start)
            cross join lateral (
              select s.metadata, s.created_at, s.value
              from signals s
              where s.organisation_id = ${organisationId} and s.prompt_id = p.id and s.id <= m.watermark
                and s.created_at >= quarter.start and s.created_at < quarter.start + interval '15 minutes'
              -- Makes Postgres search each quarter hour, rather than read all signals.
              offset 0
            ) edge
            union all
            select s.metadata, s.created_at, s.value
            from signals s
            where s.organisation_id = ${organisationId} and s.prompt_id = p.id
              -- The upper bound excludes nothing. It tells the planner that few signals are above the watermark.
              and s.id between m.watermark + 1 and 9223372036854775807
          ) s
          group by 1, 2, 3
        ) s
      ), counts as (
        select d.named_commit, width_bucket(d.start, p.bounds) as number, d.start as day, d.positive, d.negative
        from daily d
        where d.start <> all(p.split_days)
        union all
        select d.named_commit, width_bucket(q.start, p.bounds), d.start, q.positive, q.negative
        from daily d
        cross join lateral (
          select q.start, q.positive, q.negative
          from signal_counts q
          where d.named_commit is null and q.organisation_id = ${organisationId} and q.prompt_id = p.id and q.minutes = 15
            and q.start >= d.start and q.start < d.start + interval '24 hours'
          union all
          select q.start, q.positive, q.negative
          from signal_commit_counts q
          where q.organisation_id = ${organisationId} and q.prompt_id = p.id and q.minutes = 15
            and q.commit_sha = d.named_commit and q.start >= d.start and q.start < d.start + interval '24 hours'
        ) q
        where d.start = any(p.split_days) and q.start <> all(p.split_quarters)
        union all
        -- Once among all signals, and again under the commit that they name.
        select null, u.number, u.day, u.positive, u.negative
        from unrolled u
        union all
        select u.named_commit, u.number, u.day, u.positive, u.negative
        from unrolled u
        where u.named_commit is not null
      )
      select
        named_commit, number, to_char(day at time zone 'UTC', 'YYYY-MM-DD') as day,
        sum(positive)::bigint as positive, sum(negative)::bigint as negative
      from counts
      where number between 1 and cardinality(p.bounds) - 1 or named_commit in (select unnest(p.shown))
        or left(named_commit, 7) in (select unnest(p.shown))
      group by named_commit, number, day
    ) c`
