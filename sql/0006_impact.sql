-- A change is a history entry that went live: deployed, or a merged pull request. Each is live until the next one.

-- Says how many signals belong to each of these changes of a prompt, and until when it is live, null for now. A signal
-- belongs to the change that it names by its commit, whole or by at least 7 characters that begin no other commit of the
-- prompt's changes; else to the one that was live at its time. A commit of several changes names the last of them.
--
-- All that name a change are read from the counts by commit, which have them whatever their time; those of its window that
-- name this or another change are taken away from what the window has. So the sums over all changes, and over what came
-- before the first, equal the rows. Everything is read from one snapshot.
create function count_changes(given_prompt_id bigint, entry_ids bigint[])
returns table (entry_id bigint, live_until timestamptz, positive bigint, negative bigint, by_commit bigint)
language plpgsql
stable
-- The tables are reached by lateral look-ups that one index serves, also when the plan was made while they were empty.
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_mergejoin = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
declare
  mark bigint := coalesce((select m.counted_to from signal_marks m where m.prompt_id = given_prompt_id), 0);
  -- The changes in the order of time, and where the window of each begins and ends: bounds 1 and 2, 3 and 4, ….
  ids bigint[];
  commits text[];
  froms timestamptz[];
  untils timestamptz[];
  bounds timestamptz[];
begin
  select
    array_agg(c.id order by c.created_at, c.id),
    array_agg(c.commit_sha order by c.created_at, c.id),
    array_agg(c.created_at order by c.created_at, c.id),
    array_agg(c.live_until order by c.created_at, c.id)
  into ids, commits, froms, untils
  from (
    select h.id, h.commit_sha, h.created_at, next.live_until
    from unnest(entry_ids) given (id)
    cross join lateral (
      select h.id, h.commit_sha, h.created_at from history_entries h where h.id = given.id limit 1
    ) h
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

  select array_agg(b.bound order by c.number, b.bound)
  into bounds
  from unnest(froms, untils) with ordinality c (live_from, live_until, number)
  cross join lateral (values (c.live_from), (coalesce(c.live_until, 'infinity'))) b (bound);

  return query
  with within_windows as materialized (
    select (w.number + 1) / 2 as number, w.commit_sha, w.positive, w.negative
    from count_commits_between(given_prompt_id, bounds) w
    where w.number % 2 = 1
  ), at_any_time as materialized (
    select distinct c.commit_sha, c.positive, c.negative
    from unnest(commits) given (commit_sha)
    cross join lateral (
      select c.commit_sha, c.positive, c.negative
      from signal_commit_counts c
      where c.prompt_id = given_prompt_id and c.minutes = 0 and c.start = '-infinity'
        and c.commit_sha >= left(given.commit_sha, 7) and c.commit_sha <= given.commit_sha collate "C"
    ) c
    union all
    select s.commit_sha, count(*) filter (where s.value = 'positive'), count(*) filter (where s.value = 'negative')
    from (
      select commit_of_signal(s.metadata) as commit_sha, s.value
      from signals s
      where s.prompt_id = given_prompt_id and s.id > mark
      order by s.prompt_id, s.id
      offset 0
    ) s
    where s.commit_sha is not null
    group by s.commit_sha
  ), named as materialized (
    select t.commit_sha, coalesce(fit.whole_id, case when fit.first = fit.last then fit.last_id end) as entry_id
    from (select w.commit_sha from within_windows w union select a.commit_sha from at_any_time a) t
    cross join lateral (
      select
        min(h.commit_sha) as first, max(h.commit_sha) as last,
        (array_agg(h.id order by h.created_at desc, h.id desc))[1] as last_id,
        (array_agg(h.id order by h.created_at desc, h.id desc) filter (where h.commit_sha = t.commit_sha))[1] as whole_id
      from (
        select h.id, h.commit_sha, h.action, h.created_at
        from history_entries h
        where (h.prompt_id, h.commit_sha) >= (given_prompt_id, t.commit_sha)
          and (h.prompt_id, h.commit_sha)
            <= (given_prompt_id, case when length(t.commit_sha) < 7 then t.commit_sha else t.commit_sha || chr(1114111) end)
        -- Only the index of the identity has this order.
        order by h.prompt_id, h.commit_sha, h.action, h.pr_number
        offset 0
      ) h
      where h.action in ('deployed', 'pr_merged')
    ) fit
  ), by_commit as (
    select n.entry_id, sum(a.positive)::bigint as positive, sum(a.negative)::bigint as negative
    from at_any_time a
    join named n on n.commit_sha = a.commit_sha
    group by n.entry_id
  ), elsewhere as (
    select w.number, sum(w.positive)::bigint as positive, sum(w.negative)::bigint as negative
    from within_windows w
    join named n on n.commit_sha = w.commit_sha
    where n.entry_id is not null
    group by w.number
  )
  select
    c.id, c.live_until,
    coalesce(t.positive, 0) - coalesce(e.positive, 0) + coalesce(b.positive, 0),
    coalesce(t.negative, 0) - coalesce(e.negative, 0) + coalesce(b.negative, 0),
    coalesce(b.positive + b.negative, 0)
  from unnest(ids, untils) with ordinality c (id, live_until, number)
  left join (
    select (t.number + 1) / 2 as number, t.positive, t.negative
    from count_signals_between(given_prompt_id, bounds) t
    where t.number % 2 = 1
  ) t on t.number = c.number
  left join elsewhere e on e.number = c.number
  left join by_commit b on b.entry_id = c.id;
end
$$;
