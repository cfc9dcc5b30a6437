-- A change is a history entry that went live: deployed, or a merged pull request. Each is live until the next one.

-- What a commit names is found here: the change that has it, the last one by time, and the commits that begin alike.
create index history_changes on history_entries (prompt_id, commit_sha, created_at, id)
where action in ('deployed', 'pr_merged');

-- The changes of a prompt before a position, newest first, at most so many. Each action has its own range of the index.
create function changes_before(given_prompt_id bigint, before_time timestamptz, before_id bigint, max_rows integer)
returns setof history_entries
language sql
stable
as $$
  select h.*
  from (values ('deployed'), ('pr_merged')) live (action)
  cross join lateral (
    select h.*
    from history_entries h
    where h.prompt_id = given_prompt_id and h.action = live.action and (h.created_at, h.id) < (before_time, before_id)
    order by h.created_at desc, h.id desc
    limit max_rows
  ) h
  order by h.created_at desc, h.id desc
  limit max_rows
$$;

-- The texts in the counts by commit that may name a change of a prompt: a commit of one, or at least 7 characters that one
-- begins with.
--
-- Callers may have made up any number of texts, and there may be thousands of changes. Both are in order, so the smallest
-- text and the smallest commit from there on are found by their indexes, by turns, and what lies between them is skipped.
-- A text that begins a commit is not after it; so when the next commit does not begin with the text, the next text to look
-- for is the first 7 characters of that commit, or as many more as are after the text.
create function commits_named_in_counts(given_prompt_id bigint)
returns setof text
language plpgsql
stable
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
begin
  return query
  with recursive steps (counted, is_named, low) as (
    select null::text collate "C", false, ''::text collate "C"
    union all
    select
      f.counted, f.is_named,
      case
        -- No text lies between the two: it cannot have the character 0.
        when f.is_named then f.counted || chr(1)
        when left(f.known, 7) > f.counted then left(f.known, 7)
        else (
          select min(left(f.known, size))
          from generate_series(8, length(f.known)) size
          where left(f.known, size) > f.counted
        )
      end
    from steps s
    cross join lateral (
      select
        c.commit_sha as counted, h.commit_sha as known,
        h.commit_sha = c.commit_sha or length(c.commit_sha) >= 7 and starts_with(h.commit_sha, c.commit_sha) as is_named
      from (
        select c.commit_sha
        from signal_commit_counts c
        where c.prompt_id = given_prompt_id and c.commit_sha >= s.low
        order by c.prompt_id, c.commit_sha, c.minutes, c.start
        limit 1
      ) c
      cross join lateral (
        select h.commit_sha
        from history_entries h
        where h.prompt_id = given_prompt_id and h.action in ('deployed', 'pr_merged') and h.commit_sha >= c.commit_sha
        order by h.prompt_id, h.commit_sha, h.created_at, h.id
        limit 1
      ) h
    ) f
  )
  select s.counted from steps s where s.is_named;
end
$$;

-- Says how many signals belong to each of these changes of a prompt, and until when it is live, null for now. A signal
-- belongs to the change that it names by its commit, whole or by at least 7 characters that begin no other commit of the
-- prompt's changes; else to the one that was live at its time. A commit of several changes names the last of them.
--
-- All that name a change are read from the counts by commit, which have them whatever their time; those of its window that
-- name this or another change are taken away from what the window has. So the sums over all changes, and over what came
-- before the first, equal the rows. Everything is read from one snapshot. Texts that name no change are not read at all,
-- but for those after the watermark.
create function count_changes(given_prompt_id bigint, entry_ids bigint[])
returns table (entry_id bigint, live_until timestamptz, positive bigint, negative bigint, by_commit bigint)
language plpgsql
stable
-- The tables are reached by lateral look-ups that one index serves, also when the plan was made while they were empty:
-- `offset 0` keeps the planner from making joins of them that read all commits of a prompt.
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
declare
  watermark bigint := coalesce((select w.counted_to from signal_watermarks w where w.prompt_id = given_prompt_id), 0);
  -- The changes in the order of time, and where the window of each begins and ends: bounds 1 and 2, 3 and 4, …. What is
  -- between these two has an odd number by width_bucket.
  ids bigint[];
  windows timestamptz[];
  bounds timestamptz[];
  first_day timestamptz;
  -- The last instant of a quarter of an hour and of a day, from its start.
  quarter_end constant interval := interval '15 minutes' - interval '1 millisecond';
  day_end constant interval := interval '1440 minutes' - interval '1 millisecond';
begin
  select
    array_agg(c.id order by c.created_at, c.id),
    array_agg(array[c.created_at, coalesce(c.live_until, 'infinity')] order by c.created_at, c.id)
  into ids, windows
  from (
    select h.id, h.created_at, next.live_until
    from unnest(entry_ids) given (id)
    cross join lateral (select h.id, h.created_at from history_entries h where h.id = given.id limit 1) h
    cross join lateral (
      select min(later.created_at) as live_until
      from (values ('deployed'), ('pr_merged')) live (action)
      cross join lateral (
        select l.created_at
        from history_entries l
        where l.prompt_id = given_prompt_id and l.action = live.action and (l.created_at, l.id) > (h.created_at, h.id)
        order by l.created_at, l.id
        limit 1
      ) later
    ) next
  ) c;
  if ids is null then
    return;
  end if;

  bounds := array(select unnest(windows));
  first_day := floor_minutes(bounds[1], 1440);

  return query
  with tail as materialized (
    select
      s.commit_sha, s.span, count(*) filter (where s.value = 'positive') as positive,
      count(*) filter (where s.value = 'negative') as negative
    from (
      select commit_of_signal(s.metadata) as commit_sha, s.value, width_bucket(s.created_at, bounds) as span
      from signals s
      where s.prompt_id = given_prompt_id and s.id > watermark
      order by s.prompt_id, s.id
      offset 0
    ) s
    where s.commit_sha is not null
    group by s.commit_sha, s.span
  ), named as materialized (
    select t.commit_sha, fit.id as entry_id
    from (
      select c.commit_sha from commits_named_in_counts(given_prompt_id) c (commit_sha)
      union
      select t.commit_sha from tail t
    ) t
    cross join lateral (
      select h.commit_sha
      from history_entries h
      where h.prompt_id = given_prompt_id and h.action in ('deployed', 'pr_merged') and h.commit_sha >= t.commit_sha
      order by h.prompt_id, h.commit_sha, h.created_at, h.id
      limit 1
    ) known
    -- The last change of this commit; or of the last commit that begins with the text, which must be the only one.
    cross join lateral (
      select h.id, h.commit_sha
      from history_entries h
      where h.prompt_id = given_prompt_id and h.action in ('deployed', 'pr_merged') and h.commit_sha >= t.commit_sha
        and h.commit_sha
          <= case when known.commit_sha = t.commit_sha then t.commit_sha else t.commit_sha || chr(1114111) end
      order by h.prompt_id desc, h.commit_sha desc, h.created_at desc, h.id desc
      limit 1
    ) fit
    where fit.commit_sha = known.commit_sha and (known.commit_sha = t.commit_sha or length(t.commit_sha) >= 7)
  ), by_commit as (
    select c.entry_id, sum(c.positive)::bigint as positive, sum(c.negative)::bigint as negative
    from (
      select n.entry_id, c.positive, c.negative
      from named n
      cross join lateral (
        select c.positive, c.negative
        from signal_commit_counts c
        where c.prompt_id = given_prompt_id and c.commit_sha = n.commit_sha and c.minutes = 1440
        offset 0
      ) c
      where n.entry_id = any (ids)
      union all
      select n.entry_id, t.positive, t.negative from tail t join named n on n.commit_sha = t.commit_sha
    ) c
    group by c.entry_id
  ), days as materialized (
    select
      n.commit_sha, d.start, d.positive, d.negative, width_bucket(d.start, bounds) as span,
      width_bucket(d.start + day_end, bounds) as last_span
    from named n
    cross join lateral (
      select d.start, d.positive, d.negative
      from signal_commit_counts d
      where d.prompt_id = given_prompt_id and d.commit_sha = n.commit_sha and d.minutes = 1440
        and d.start >= first_day and d.start < bounds[cardinality(bounds)]
      offset 0
    ) d
  ), quarters as materialized (
    select
      q.start, q.positive, q.negative, width_bucket(q.start, bounds) as span,
      width_bucket(q.start + quarter_end, bounds) as last_span
    from days d
    cross join lateral (
      select q.start, q.positive, q.negative
      from signal_commit_counts q
      where q.prompt_id = given_prompt_id and q.commit_sha = d.commit_sha and q.minutes = 15
        and q.start >= d.start and q.start <= d.start + day_end
      offset 0
    ) q
    where d.span <> d.last_span
  ), edges as (
    select width_bucket(s.created_at, bounds) as span, s.value
    from (select distinct q.start from quarters q where q.span <> q.last_span) e
    cross join lateral (
      select s.id, s.created_at, s.value, commit_of_signal(s.metadata) as commit_sha
      from signals s
      where s.prompt_id = given_prompt_id and s.created_at >= e.start and s.created_at <= e.start + quarter_end
      order by s.prompt_id, s.created_at, s.id
      offset 0
    ) s
    join named n on n.commit_sha = s.commit_sha
    where s.id <= watermark
  ), elsewhere as (
    select w.span, sum(w.positive)::bigint as positive, sum(w.negative)::bigint as negative
    from (
      select d.span, d.positive, d.negative from days d where d.span = d.last_span
      union all
      select q.span, q.positive, q.negative from quarters q where q.span = q.last_span
      union all
      select e.span, (e.value = 'positive')::integer, (e.value = 'negative')::integer from edges e
      union all
      select t.span, t.positive, t.negative from tail t join named n on n.commit_sha = t.commit_sha
    ) w
    group by w.span
  )
  select
    c.id, nullif(bounds[2 * c.number], 'infinity'),
    coalesce(t.positive, 0) - coalesce(e.positive, 0) + coalesce(b.positive, 0),
    coalesce(t.negative, 0) - coalesce(e.negative, 0) + coalesce(b.negative, 0),
    coalesce(b.positive + b.negative, 0)
  from unnest(ids) with ordinality c (id, number)
  left join count_signals_between(given_prompt_id, bounds) t on t.number = 2 * c.number - 1
  left join elsewhere e on e.span = 2 * c.number - 1
  left join by_commit b on b.entry_id = c.id;
end
$$;
