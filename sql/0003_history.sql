-- A history is ordered by time, and entries of the same time by id, which rises with arrival. No foreign keys, here and
-- below: prompts are never deleted, the functions of this file are the only writers, and a check for each row would cost
-- more than the row.
create table history_entries (
  id bigint generated always as identity primary key,
  organisation_id bigint not null,
  prompt_id bigint not null,
  action text not null check (action in ('deployed', 'pr_opened', 'pr_merged', 'pr_closed')),
  user_name text not null,
  user_email text not null,
  commit_sha text collate "C" not null,
  branch_name text not null,
  pr_number integer check (pr_number > 0),
  pr_url text,
  created_at timestamptz(3) not null,
  -- How often the pull request had been reopened, for one that is closed again at the same commit.
  reopenings integer not null default 0,
  -- The sources that have the entry. One that neither has was recorded by a caller, and stands as it was given.
  in_git boolean not null default false,
  on_github boolean not null default false,
  -- The identity of an entry: recording it a second time is a replay.
  unique nulls not distinct (prompt_id, commit_sha, action, pr_number, reopenings),
  check (
    case action
      when 'deployed' then pr_number is null and pr_url is null
      else pr_number is not null and pr_url is not null
    end
  )
);

create index on history_entries (prompt_id, created_at, id);
create index on history_entries (prompt_id, action, created_at, id);
create index on history_entries (prompt_id, branch_name, created_at, id);

-- A sparse index of positions: for one entry in every few hundred, the number of entries before it in its history.
-- A page at any depth is found from the nearest row here, by walking over a few hundred index entries at most; and an
-- entry that arrives late moves the ranks after it instead of every entry after it.
create table history_ranks (
  prompt_id bigint not null,
  created_at timestamptz(3) not null,
  entry_id bigint not null,
  rank bigint not null check (rank > 0),
  primary key (prompt_id, created_at, entry_id)
);

create index on history_ranks (prompt_id, rank);

-- Ranked entries are at least as far apart as this, and at most twice as far.
create function history_rank_distance() returns bigint language sql immutable return 250;

-- Counts the entries of a history that are earlier than a time. It is stable, so that it sees the caller's snapshot.
create function count_history_before(given_prompt_id bigint, history_count bigint, before timestamptz)
returns bigint
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
as $$
declare
  low history_ranks;
begin
  if before = 'infinity' then return history_count; end if;
  if before = '-infinity' then return 0; end if;

  select r.* into low
  from history_ranks r
  where r.prompt_id = given_prompt_id and r.created_at < before
  order by r.created_at desc, r.entry_id desc
  limit 1;

  return coalesce(low.rank, 0) + (
    select count(*)
    from (
      select
      from history_entries h
      where h.prompt_id = given_prompt_id
        and (h.created_at, h.id) >= (coalesce(low.created_at, '-infinity'), coalesce(low.entry_id, 0))
        and h.created_at < before
      -- Only one index has this order.
      order by h.created_at, h.id
      offset 0
    ) between_them
  );
end
$$;

-- The time of the newest entry of a history; null for an empty one.
create function newest_history_time(given_prompt_id bigint)
returns timestamptz
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
as $$
begin
  return (
    select h.created_at
    from history_entries h
    where h.prompt_id = given_prompt_id
    order by h.created_at desc, h.id desc
    limit 1
  );
end
$$;

-- Ranks entries of a prompt that lie far from ranked ones, between one ranked entry (nulls for the begin) and the next.
create function rank_history_gap(
  ranked_prompt_id bigint, from_created_at timestamptz, from_id bigint, from_rank bigint, to_rank bigint
)
returns void
language sql
as $$
  insert into history_ranks (prompt_id, created_at, entry_id, rank)
  select ranked_prompt_id, n.created_at, n.id, from_rank + n.nth
  from (
    select h.created_at, h.id, row_number() over (order by h.created_at, h.id) - 1 as nth
    from history_entries h
    where h.prompt_id = ranked_prompt_id
      and (h.created_at, h.id) >= (coalesce(from_created_at, '-infinity'), coalesce(from_id, 0))
    order by h.created_at, h.id
    limit to_rank - from_rank
  ) n
  where n.nth > 0 and n.nth % history_rank_distance() = 0 and to_rank - from_rank - n.nth >= history_rank_distance()
$$;

-- Brings the ranks of a prompt up to date after new entries, of which there are few.
create function update_history_ranks(ranked_prompt_id bigint, new_ids bigint[], history_count bigint)
returns void
language plpgsql
as $$
declare
  times timestamptz[];
  gap record;
begin
  select array_agg(h.created_at order by h.created_at)
  into times
  from unnest(new_ids) n (id)
  -- Fenced by the offset, so that the entry is found by its id alone.
  cross join lateral (select e.prompt_id, e.created_at from history_entries e where e.id = n.id offset 0) h
  where h.prompt_id = ranked_prompt_id;

  -- A new entry comes after those of the same time, so only earlier ones count; times are whole milliseconds.
  update history_ranks r
  set rank = r.rank + width_bucket(r.created_at - interval '1 microsecond', times)
  where r.prompt_id = ranked_prompt_id and r.created_at > times[1];

  for gap in
    select distinct low.created_at, low.entry_id, coalesce(low.rank, 0) as rank, coalesce(high.rank, history_count) as next
    from unnest(times) t (created_at)
    left join lateral (
      select r.* from history_ranks r
      where r.prompt_id = ranked_prompt_id and r.created_at <= t.created_at
      order by r.created_at desc, r.entry_id desc
      limit 1
    ) low on true
    left join lateral (
      select r.* from history_ranks r
      where r.prompt_id = ranked_prompt_id and r.created_at > t.created_at
      order by r.created_at, r.entry_id
      limit 1
    ) high on true
    where coalesce(high.rank, history_count) - coalesce(low.rank, 0) > 2 * history_rank_distance()
  loop
    perform rank_history_gap(ranked_prompt_id, gap.created_at, gap.entry_id, gap.rank, gap.next);
  end loop;
end
$$;

-- Locks histories until the end of the transaction. The prompts are given once each, in ascending order, and locked in
-- that order, so that no two calls deadlock. Each is looked up separately: for a list of them, a plan made on a small
-- table would read an index from end to end.
create function lock_histories(prompt_ids bigint[])
returns void
language plpgsql
set enable_seqscan = off
as $$
begin
  perform
  from unnest(prompt_ids) given (id)
  cross join lateral (select from prompts p where p.id = given.id for no key update) held;
end
$$;

-- Adds entries, a JSON array of objects with the names of the columns and no two of the same identity, in the order
-- given. Answers the id of each with its identity; and of those that were in the history before, the entry as it stands
-- there. An entry of a prompt that does not exist is left out. The prompts are given once each, in ascending order.
create function record_history(prompt_ids bigint[], given json, out recorded json, out replayed json)
language plpgsql
-- A lock that another transaction holds is given up soon: the caller then retries for that prompt alone.
set lock_timeout = '200ms'
-- The plans are the same for any batch, and must not change with what the planner believes of the tables: made while
-- they were empty, they would scan them from end to end for as long as they are cached.
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
set enable_incremental_sort = off
as $$
declare
  last_id bigint;
  new_ids bigint[];
  prompts_to_rank bigint[];
begin
  perform lock_histories(prompt_ids);

  -- The entries of these prompts have lower ids, as each id is drawn while the prompt is held.
  last_id := nextval('history_entries_id_seq');

  with written as (
    insert into history_entries (
      organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, pr_number, pr_url, created_at,
      reopenings, in_git, on_github
    )
    select
      p.organisation_id, p.id, g.action, g.user_name, g.user_email, g.commit_sha, g.branch_name, g.pr_number, g.pr_url,
      g.created_at, coalesce(g.reopenings, 0), coalesce(g.in_git, false), coalesce(g.on_github, false)
    from json_populate_recordset(null::history_entries, given) g
    cross join lateral (select p.id, p.organisation_id from prompts p where p.id = g.prompt_id limit 1) p
    -- The update changes nothing, but returns the existing entry. The index that finds it is the only one that can.
    on conflict (prompt_id, commit_sha, action, pr_number, reopenings) do update set action = excluded.action
    returning *
  ), added as (
    select w.prompt_id, count(*) as number, min(w.created_at) as earliest
    from written w
    where w.id > last_id
    group by w.prompt_id
  ), counted as (
    -- The row is found by its ctid, which cannot change while it is locked: a join by the id could scan all prompts.
    update prompts p
    set history_version = default, history_count = p.history_count + a.number
    from added a
    cross join lateral (select held.ctid from prompts held where held.id = a.prompt_id limit 1) held
    where p.ctid = held.ctid
    returning p.id, p.history_count, a.earliest
  )
  select
    json_agg(json_build_array(w.id, w.prompt_id, w.action, w.pr_number, w.commit_sha)),
    json_agg(json_build_object(
      'prompt_id', w.prompt_id, 'id', w.id, 'action', w.action, 'user_name', w.user_name, 'user_email', w.user_email,
      'commit_sha', w.commit_sha, 'branch_name', w.branch_name, 'pr_number', w.pr_number, 'pr_url', w.pr_url,
      'created_at', w.created_at
    )) filter (where w.id < last_id),
    array_agg(w.id) filter (where w.id > last_id),
    (
      select array_agg(c.id)
      from counted c
      left join lateral (
        select r.created_at, r.rank from history_ranks r
        where r.prompt_id = c.id
        order by r.created_at desc, r.entry_id desc
        limit 1
      ) last on true
      where c.earliest < last.created_at or c.history_count - coalesce(last.rank, 0) > 2 * history_rank_distance()
    )
  into recorded, replayed, new_ids, prompts_to_rank
  from written w;

  if prompts_to_rank is not null then
    perform update_history_ranks(p.id, new_ids, p.history_count)
    from unnest(prompts_to_rank) given (id)
    cross join lateral (select p.id, p.history_count from prompts p where p.id = given.id limit 1) p;
  end if;
end
$$;

-- Brings the count, the version and the ranks of a history up to date after entries were added, removed (a negative
-- number) or changed; everything from `earliest` on is ranked anew, and nothing if that is null.
create function renew_history(given_prompt_id bigint, added bigint, earliest timestamptz)
returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  new_count bigint;
  low history_ranks;
begin
  update prompts p
  set history_version = default, history_count = p.history_count + added
  where p.id = given_prompt_id
  returning p.history_count into new_count;

  if earliest is null then return; end if;

  delete from history_ranks r where r.prompt_id = given_prompt_id and r.created_at >= earliest;

  select r.* into low
  from history_ranks r
  where r.prompt_id = given_prompt_id
  order by r.created_at desc, r.entry_id desc
  limit 1;

  perform rank_history_gap(given_prompt_id, low.created_at, low.entry_id, coalesce(low.rank, 0), new_count);
end
$$;

-- The commits that merges of pull requests brought to a branch. They are not deployed by themselves.
create table merged_commits (
  prompt_id bigint not null,
  branch_name text not null,
  commit_sha text not null,
  pr_number integer not null,
  primary key (prompt_id, branch_name, commit_sha)
);

-- Returns the entries of a commit with the given action. As a comparison of rows, in this order, they can only be found by
-- the index of the identity; with equalities the planner might take another one, and read the whole history.
create function find_commit_entries(given_prompt_id bigint, given_commit_sha text, given_action text)
returns setof history_entries
language plpgsql
stable
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
as $$
begin
  return query
  select h.*
  from history_entries h
  where (h.prompt_id, h.commit_sha, h.action) >= (given_prompt_id, given_commit_sha, given_action)
    and (h.prompt_id, h.commit_sha, h.action) <= (given_prompt_id, given_commit_sha, given_action)
  order by h.prompt_id, h.commit_sha, h.action, h.pr_number, h.reopenings;
end
$$;

-- Returns the entries that are the given merge under another name: the "deployed" ones of its commits on the same branch;
-- and for GitHub, which knows its pull requests, the merge of another number that a message in git names for the same
-- commit. The one to become the merge comes first: that of the merge commit, else the newest.
create function find_superseded(merge_of history_entries, covers text[])
returns bigint[]
language plpgsql
stable
as $$
begin
  return array(
    select h.id
    from (select distinct c.commit_sha from unnest(covers || merge_of.commit_sha) c (commit_sha)) c
    cross join lateral find_commit_entries(merge_of.prompt_id, c.commit_sha, 'deployed') h
    where h.branch_name = merge_of.branch_name
    order by h.commit_sha = merge_of.commit_sha desc, h.created_at desc, h.id desc
  ) || array(
    select h.id
    from find_commit_entries(merge_of.prompt_id, merge_of.commit_sha, 'pr_merged') h
    where merge_of.on_github and h.pr_number <> merge_of.pr_number and h.in_git and not h.on_github
  );
end
$$;

-- Returns an entry as it stands after another source has brought it. Git knows the author of a commit by the mailmap, and
-- GitHub who merged, and when something was pushed or merged.
create function combine_history_entries(known history_entries, given history_entries)
returns history_entries
language plpgsql
immutable
as $$
begin
  if not known.in_git and not known.on_github then return known; end if;

  if given.in_git then
    known.in_git := true;
    if known.action = 'deployed' then
      known.user_name := given.user_name;
      known.user_email := given.user_email;
    end if;
  end if;

  if given.on_github and not known.on_github then
    known.on_github := true;
    known.branch_name := given.branch_name;
    known.pr_url := given.pr_url;
    known.created_at := given.created_at;
    if known.action <> 'deployed' then
      known.user_name := given.user_name;
      known.user_email := given.user_email;
    end if;
  end if;

  return known;
end
$$;

-- Reconciles what two sources know of the same changes. The entries are a JSON array as above, each with reopenings, in_git
-- and on_github, and a merge with the commits that it covers. Answers the positions in the array, from 1 on, of the entries by
-- which a history has changed; of those that are in it now; and of those that are not to be recorded: commits that a merge
-- covers, and merges that GitHub knows to be others.
create function reconcile_history(given json, out changed bigint[], out present bigint[], out covered bigint[])
language plpgsql
-- Each look-up, also of the functions that are called, is planned once: planned for its values, it would read more rows for
-- the plan than for the answer.
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  item record;
  incoming history_entries;
  known history_entries;
  combined history_entries;
  superseded bigint[];
  superseded_id bigint;
  earliest timestamptz;
  -- What has changed in which histories: each is renewed once, since ranking reads all entries from the earliest one on.
  renewed_prompts bigint[] := '{}';
  renewed_counts bigint[] := '{}';
  renewed_from timestamptz[] := '{}';
begin
  changed := '{}';
  present := '{}';
  covered := '{}';

  -- Merges come first, so that they cover what is given beside them.
  for item in
    select e.position, e.entry, array(select json_array_elements_text(e.entry -> 'covers')) as covers
    from json_array_elements(given) with ordinality e (entry, position)
    -- What is opened or closed, GitHub alone knows.
    where e.entry ->> 'action' in ('deployed', 'pr_merged')
    order by e.entry ->> 'action' = 'pr_merged' desc, e.position
  loop
    incoming := json_populate_record(null::history_entries, item.entry);
    superseded := '{}';
    earliest := null;

    if incoming.action = 'pr_merged' then
      -- GitHub knows the numbers of its pull requests; in git they are read from messages.
      if incoming.in_git and exists (
        select from find_commit_entries(incoming.prompt_id, incoming.commit_sha, incoming.action) h
        where h.pr_number <> incoming.pr_number and h.on_github
      ) then
        covered := covered || item.position;
        continue;
      end if;

      insert into merged_commits (prompt_id, branch_name, commit_sha, pr_number)
      select incoming.prompt_id, incoming.branch_name, c.commit_sha, incoming.pr_number
      from unnest(item.covers || incoming.commit_sha) c (commit_sha)
      on conflict do nothing;

      superseded := find_superseded(incoming, item.covers);
    elsif exists (
      select from merged_commits m
      where m.prompt_id = incoming.prompt_id
        and m.branch_name = incoming.branch_name
        and m.commit_sha = incoming.commit_sha
    ) then
      covered := covered || item.position;
      continue;
    end if;

    select h.* into known
    from find_commit_entries(incoming.prompt_id, incoming.commit_sha, incoming.action) h
    where h.pr_number is not distinct from incoming.pr_number and h.reopenings = incoming.reopenings;

    if found then
      combined := combine_history_entries(known, incoming);
    elsif cardinality(superseded) > 0 then
      select h.* into known from history_entries h where h.id = superseded[1];
      superseded := superseded[2:];
      combined := incoming;
    else
      continue;
    end if;
    present := present || item.position;

    if combined is distinct from known then
      update history_entries h
      set
        action = combined.action, user_name = combined.user_name, user_email = combined.user_email,
        commit_sha = combined.commit_sha, branch_name = combined.branch_name, pr_number = combined.pr_number,
        pr_url = combined.pr_url, created_at = combined.created_at, in_git = combined.in_git,
        on_github = combined.on_github
      where h.id = known.id;
    end if;

    foreach superseded_id in array superseded loop
      delete from history_entries h where h.id = superseded_id returning least(earliest, h.created_at) into earliest;
    end loop;
    if combined.created_at <> known.created_at then
      earliest := least(earliest, combined.created_at, known.created_at);
    end if;

    -- Which sources have an entry is not shown.
    combined.in_git := known.in_git;
    combined.on_github := known.on_github;
    if cardinality(superseded) > 0 or combined is distinct from known then
      changed := changed || item.position;
      renewed_prompts := renewed_prompts || incoming.prompt_id;
      renewed_counts := renewed_counts || -cardinality(superseded)::bigint;
      renewed_from := renewed_from || earliest;
    end if;
  end loop;

  perform renew_history(r.prompt_id, sum(r.added)::bigint, min(r.earliest))
  from unnest(renewed_prompts, renewed_counts, renewed_from) r (prompt_id, added, earliest)
  group by r.prompt_id;
end
$$;

-- Where an import gathers its entries before they are recorded. No row outlives its transaction, so that each import sees
-- its own rows alone, and the table needs no write-ahead log.
create unlogged table history_staging (
  item bigint not null,
  prompt_id bigint not null,
  action text not null,
  user_name text not null,
  user_email text not null,
  commit_sha text collate "C" not null,
  branch_name text not null,
  pr_number integer,
  pr_url text,
  created_at timestamptz(3) not null
);

-- Moves the staged entries of an import into the histories, and returns how many are new. An entry that exists already, or
-- is repeated, is skipped. Unlike record_history it is planned for the number of entries.
create function import_history(out added bigint)
language plpgsql
as $$
declare
  history record;
begin
  added := 0;

  perform
  from prompts p
  where p.id in (select s.prompt_id from history_staging s)
  order by p.id
  for no key update;

  for history in
    with fresh as (
      select distinct on (s.prompt_id, s.commit_sha, s.action, s.pr_number) s.*
      from history_staging s
      where not exists (
        select from history_entries h
        where h.prompt_id = s.prompt_id
          and h.commit_sha = s.commit_sha
          and h.action = s.action
          and h.pr_number is not distinct from s.pr_number
      )
      order by s.prompt_id, s.commit_sha, s.action, s.pr_number, s.item
    ), written as (
      insert into history_entries (
        organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, pr_number, pr_url,
        created_at
      )
      select
        p.organisation_id, p.id, f.action, f.user_name, f.user_email, f.commit_sha, f.branch_name, f.pr_number,
        f.pr_url, f.created_at
      from fresh f
      join prompts p on p.id = f.prompt_id
      order by p.id, f.created_at, f.item
      returning prompt_id, created_at
    )
    select w.prompt_id, count(*) as number, min(w.created_at) as earliest from written w group by w.prompt_id
  loop
    added := added + history.number;
    perform renew_history(history.prompt_id, history.number, history.earliest);
  end loop;

  delete from history_staging;
end
$$;
