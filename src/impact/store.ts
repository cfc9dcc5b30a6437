import type { Sql } from '../db/client.ts'
import type { Action, EntryRow } from '../history/schema.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { ListedChange, SignalCount, SplitBounds } from './attribute.ts'

/** All changes of prompts, oldest first, by prompt. */
export type ChangeLists = Map<number, ListedChange[]>

type ChangeValues = [id: number, commitKey: string, time: number, action: Action, branch: string]

/** As JSON: the driver takes several times as long for as many rows. */
export async function selectChanges(sql: Sql, organisationId: number, promptIds: number[]): Promise<ChangeLists> {
  const rows = await sql<{ prompt_id: number; changes: ChangeValues[] }>`
    select
      h.prompt_id,
      json_agg(
        json_build_array(h.id, h.commit_key, (extract(epoch from h.created_at) * 1000)::bigint, h.action, h.branch_name)
        order by h.created_at, h.id
      ) as changes
    from history_changes h
    where h.organisation_id = ${organisationId} and h.prompt_id = any(${promptIds.map(String)}::text[]::bigint[])
    group by h.prompt_id`
  const list = (prompt_id: number, changes: ChangeValues[]) =>
    changes.map(([id, commit_key, time, action, branch_name]) => {
      return { id, prompt_id, commit_key, created_at: new Date(time), action, branch_name }
    })
  return new Map(rows.map(({ prompt_id, changes }) => [prompt_id, list(prompt_id, changes)]))
}

export const selectEntries = (sql: Sql, organisationId: number, ids: number[]) =>
  sql<EntryRow>`
    select
      h.id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number, h.pr_url, h.created_at, h.title
    from history_entries h
    where h.organisation_id = ${organisationId} and h.id = any(${ids.map(String)}::text[]::bigint[])`

/** When the live change of each of these prompts went live. */
export const selectLastChanges = (sql: Sql, organisationId: number, promptIds: number[]) =>
  sql<{ prompt_id: number; created_at: Date }>`
    select p.id as prompt_id, h.created_at
    from unnest(${promptIds.map(String)}::text[]::bigint[]) p (id)
    cross join lateral (
      select h.created_at
      from history_changes h
      where h.organisation_id = ${organisationId} and h.prompt_id = p.id
      order by h.created_at desc, h.id desc
      limit 1
    ) h`

/** How many longer hashes in signals count for the short one of a change: clients may make up any number. */
const maxLongerHashes = 100

/**
 * A prompt whose signals are counted. `commits` are those of all its changes, in lower case: signals may name each of them, or
 * a hash that begins it. `short` are those that may themselves begin a hash in a signal. `shown` are those whose signals count
 * whatever their time.
 */
type CountedPrompt = SplitBounds & { id: number; commits: string[]; short: string[]; shown: string[] }

/**
 * Counts the signals of each prompt by the span between two bounds and by day, UTC: all of them (`text` is null), and those
 * that have each string for a commit. Of these it reads only strings that can name a change, because clients may make up any
 * number of others. They are prefixes of its commit, so they sort between its first 7 characters and itself; or, if its commit
 * is a short hash, longer ones. A day that has a bound in it is read by quarters of an hour, and a quarter that has one from
 * the signals. One statement counts for many prompts, because Postgres takes longer to start it than to count for one.
 */
export const selectSignalCounts = (sql: Sql, organisationId: number, prompts: CountedPrompt[]) =>
  sql<SignalCount & { promptId: number }>`
    select p.id as "promptId", c.*
    from json_to_recordset(${JSON.stringify(prompts)}::text::json) p (
      id bigint, bounds timestamptz[], days timestamptz[], quarters timestamptz[], commits text[], short text[], shown text[]
    )
    cross join lateral (
      with given as materialized (
        select (
          select coalesce(max(last_rolled_up_id), 0) from signal_watermarks where organisation_id = ${organisationId} and prompt_id = p.id
        ) as watermark
      ), known as materialized (
        select unnest(p.commits) as commit
      ), days as materialized (
        select null as text, c.start, c.positive, c.negative
        from signal_counts c
        where c.organisation_id = ${organisationId} and c.prompt_id = p.id and c.minutes = 1440
          and c.start >= floor_minutes(p.bounds[1], 1440)
        union all
        (
          select c.commit_sha, c.start, c.positive, c.negative
          from known k
          join signal_commit_counts c
            on c.organisation_id = ${organisationId} and c.prompt_id = p.id and c.minutes = 1440 and c.commit_sha between left(k.commit, 7) and k.commit
            and starts_with(k.commit, c.commit_sha)
          union
          select c.commit_sha, c.start, c.positive, c.negative
          from unnest(p.short) short (commit)
          cross join lateral (
            select distinct l.commit_sha
            from signal_commit_counts l
            where l.organisation_id = ${organisationId} and l.prompt_id = p.id and l.minutes = 1440
              and l.commit_sha > short.commit and l.commit_sha < short.commit || 'g'
            order by l.commit_sha
            limit ${maxLongerHashes}
          ) longer
          join signal_commit_counts c
            on c.organisation_id = ${organisationId} and c.prompt_id = p.id and c.minutes = 1440 and c.commit_sha = longer.commit_sha
        )
      ), rest as materialized (
        -- Normalises the commit once per group, because for each signal it would take longer than finding the signal.
        select commit_of_signal(jsonb_build_object('commit_sha', s.commit)) as text, s.number, s.day, s.positive, s.negative
        from (
          select
            s.metadata -> 'commit_sha' as commit, width_bucket(s.created_at, p.bounds) as number,
            floor_minutes(s.created_at, 1440) as day, count(*) filter (where s.value = 'positive') as positive,
            count(*) filter (where s.value = 'negative') as negative
          from given g
          cross join lateral (
            select edge.*
            from unnest(p.quarters) quarter (start)
            cross join lateral (
              select s.metadata, s.created_at, s.value
              from signals s
              where s.organisation_id = ${organisationId} and s.prompt_id = p.id and s.id <= g.watermark
                and s.created_at >= quarter.start and s.created_at < quarter.start + interval '15 minutes'
              -- Makes Postgres search each quarter, rather than read all signals.
              offset 0
            ) edge
            union all
            select s.metadata, s.created_at, s.value
            from signals s
            where s.organisation_id = ${organisationId} and s.prompt_id = p.id and s.id between g.watermark + 1 and 9223372036854775807
          ) s
          group by 1, 2, 3
        ) s
      ), counts as (
        select d.text, width_bucket(d.start, p.bounds) as number, d.start as day, d.positive, d.negative
        from days d
        where d.start <> all(p.days)
        union all
        select d.text, width_bucket(q.start, p.bounds), d.start, q.positive, q.negative
        from days d
        cross join lateral (
          select q.start, q.positive, q.negative
          from signal_counts q
          where d.text is null and q.organisation_id = ${organisationId} and q.prompt_id = p.id and q.minutes = 15
            and q.start >= d.start and q.start < d.start + interval '24 hours'
          union all
          select q.start, q.positive, q.negative
          from signal_commit_counts q
          where q.organisation_id = ${organisationId} and q.prompt_id = p.id and q.minutes = 15 and q.commit_sha = d.text
            and q.start >= d.start and q.start < d.start + interval '24 hours'
        ) q
        where d.start = any(p.days) and q.start <> all(p.quarters)
        union all
        select named.text, r.number, r.day, r.positive, r.negative
        from rest r
        cross join lateral (
          select null as text
          union all
          select r.text where left(r.text, 7) in (select left(commit, 7) from known)
        ) named
      )
      select
        text, number, to_char(day at time zone 'UTC', 'YYYY-MM-DD') as day, sum(positive)::bigint as positive,
        sum(negative)::bigint as negative
      from counts
      where number between 1 and cardinality(p.bounds) - 1 or left(text, 7) in (select left(unnest(p.shown), 7))
      group by text, number, day
    ) c`

/** A commit in lower case as a history entry or a signal has it. */
export type KnownCommit = { text: string; is_entry: boolean }

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
): Promise<EntryRow | undefined> {
  const [entry] = await sql<EntryRow>`
    select h.*
    from history_entries h
    where h.organisation_id = ${organisationId} and h.prompt_id = ${id} and lower(h.commit_sha) = any(${commits}::text[])
    order by h.action in ('deployed', 'pr_merged') desc, h.created_at desc, h.id desc
    limit 1`
  return entry
}
