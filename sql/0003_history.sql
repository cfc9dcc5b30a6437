-- One history entry of a prompt: a commit that went live, or an event of a pull request. A history is ordered by created_at,
-- then by id. Ids are drawn while the prompt is locked, so entries of the same time keep the order in which they arrived.
-- Histories need no foreign keys: every writer locks the prompt first, and so does its erasure.
create table history_entries (
  id bigint generated always as identity,
  organisation_id bigint not null,
  prompt_id bigint not null,
  action text not null check (action in ('deployed', 'pr_opened', 'pr_merged', 'pr_closed')),
  user_name text not null,
  user_email text not null,
  commit_sha text collate "C" not null,
  branch_name text not null,
  pr_number integer check (pr_number > 0),
  pr_url text,
  -- The subject of the commit, or the title of the pull request.
  title text check (length(title) between 1 and 200),
  -- Names of the authors of a merged pull request.
  authors jsonb not null default '[]',
  created_at timestamptz(3) not null,
  -- Who reported the entry: sync, the webhook, a client.
  in_git boolean not null default false,
  on_github boolean not null default false,
  by_call boolean not null default false,
  -- A client recorded it first, so neither sync nor the webhook changes its fields.
  as_given boolean not null default false,
  -- It went live on the prompt's live branch, and the entry live before it has another commit (src/history/changes.ts).
  is_change boolean not null default false,
  -- The text of the prompt after the change, if it was given. Large ones are stored out of line.
  text text check (octet_length(text) <= 262144),
  -- The file that the prompt was linked to when sync or the webhook added the entry.
  repository text,
  path text,
  primary key (organisation_id, id),
  check (
    case action
      when 'deployed' then pr_number is null and pr_url is null
      else pr_number is not null
    end
  )
);

-- Finds a commit by its first characters.
create index on history_entries (prompt_id, lower(commit_sha));
-- Finds short hashes by their first characters. They are few, but any number of whole hashes may begin like one.
create index on history_entries (prompt_id, lower(left(commit_sha, 7))) where length(commit_sha) not in (40, 64);
create index on history_entries (prompt_id, created_at, id);
create index on history_entries (prompt_id, action, created_at, id);
create index on history_entries (prompt_id, branch_name, created_at, id);
-- Finds texts to erase.
create index on history_entries (organisation_id, prompt_id) where text is not null;

-- Like signals_owner.
create statistics history_entries_owner (dependencies) on prompt_id, organisation_id from history_entries;

-- The entries without their texts, which may be large.
create view history_rows as
select
  id, organisation_id, prompt_id, action, user_name, user_email, commit_sha, branch_name, pr_number, pr_url, title,
  authors, created_at, in_git, on_github, by_call, as_given, is_change, text is not null as has_text
from history_entries;

-- A change: a history entry after which another commit was live. It is live until the next change.
create view history_changes as
select *, lower(commit_sha) as commit_key from history_rows where is_change;

create index history_changes_by_time on history_entries (prompt_id, created_at, id)
where is_change;

create index history_changes_of_organisation on history_entries (organisation_id, created_at, id)
where is_change;

create index history_changes_by_commit on history_entries (prompt_id, lower(commit_sha), created_at, id)
where is_change;

-- A commit that a merged pull request brought to a branch. It gets no entry: the merge has one, with the commit merge_sha.
-- Both are in lower case. The last one that changes the prompt leaves the text that the merge has.
create table merged_commits (
  organisation_id bigint not null,
  prompt_id bigint not null,
  branch_name text not null,
  commit_sha text collate "C" not null,
  merge_sha text collate "C" not null,
  is_last boolean not null default false,
  primary key (organisation_id, prompt_id, branch_name, commit_sha)
);

-- The identity of a removed entry that sync or the webhook had reported, so that they do not bring it back. The commit is in
-- lower case.
create table removed_entries (
  organisation_id bigint not null,
  prompt_id bigint not null,
  commit_sha text collate "C" not null,
  action text not null,
  branch_name text not null,
  pr_number integer,
  unique nulls not distinct (organisation_id, prompt_id, commit_sha, action, branch_name, pr_number)
);

-- A marker in a history: `rank` entries of the prompt come before the position (created_at, entry_id). No entry needs to be
-- at that position. Markers are at most 500 entries apart, so a page at any depth is found by a short walk from one.
create table history_ranks (
  organisation_id bigint not null,
  prompt_id bigint not null,
  created_at timestamptz(3) not null,
  entry_id bigint not null,
  rank bigint not null check (rank >= 0),
  primary key (organisation_id, prompt_id, created_at, entry_id)
);

create index on history_ranks (organisation_id, prompt_id, rank);

-- Counts the entries of a history that are earlier than a time, from the nearest marker. It is stable, so that it sees the
-- same snapshot as the statement that reads the page.
create function count_history_before(
  given_organisation_id bigint, given_prompt_id bigint, history_count bigint, before timestamptz
)
returns bigint
language plpgsql
stable
as $$
declare
  low history_ranks;
begin
  if before = 'infinity' then return history_count; end if;
  if before = '-infinity' then return 0; end if;

  select r.* into low
  from history_ranks r
  where r.organisation_id = given_organisation_id and r.prompt_id = given_prompt_id and r.created_at < before
  order by r.created_at desc, r.entry_id desc
  limit 1;

  return coalesce(low.rank, 0) + (
    select count(*)
    from history_entries h
    where h.organisation_id = given_organisation_id and h.prompt_id = given_prompt_id
      and (h.created_at, h.id) >= (coalesce(low.created_at, '-infinity'), coalesce(low.entry_id, 0))
      and h.created_at < before
  );
end
$$;

-- Adds markers every 250 entries where two are more than 500 apart, from the last marker before `earliest` on.
create function add_history_ranks(
  given_organisation_id bigint, given_prompt_id bigint, history_count bigint, earliest timestamptz
)
returns void
language plpgsql
as $$
begin
  with low as (
    select r.created_at, r.entry_id, r.rank
    from history_ranks r
    where r.organisation_id = given_organisation_id and r.prompt_id = given_prompt_id and r.created_at < earliest
    order by r.created_at desc, r.entry_id desc
    limit 1
  ), markers as (
    select * from low
    union all
    select '-infinity', 0, 0 where not exists (select from low)
    union all
    select r.created_at, r.entry_id, r.rank
    from history_ranks r
    where r.organisation_id = given_organisation_id and r.prompt_id = given_prompt_id and r.created_at >= earliest
  ), gaps as (
    select m.*, lead(m.rank, 1, history_count) over (order by m.created_at, m.entry_id) - m.rank as size
    from markers m
  )
  insert into history_ranks (organisation_id, prompt_id, created_at, entry_id, rank)
  select given_organisation_id, given_prompt_id, n.created_at, n.id, g.rank + n.nth
  from gaps g
  cross join lateral (
    select h.created_at, h.id, row_number() over (order by h.created_at, h.id) - 1 as nth
    from history_entries h
    where h.organisation_id = given_organisation_id and h.prompt_id = given_prompt_id
      and (h.created_at, h.id) >= (g.created_at, g.entry_id)
    order by h.created_at, h.id
    limit g.size
  ) n
  where g.size > 500 and n.nth % 250 = 0 and n.nth between 1 and g.size - 250;
end
$$;

-- The nearest entries that went live before and after a position, on one branch unless that is null, and of other commits
-- than the given ones, which are in lower case. array_position is deliberate: with "= any", Postgres might use the index by
-- action and sort the whole history.
create function live_neighbours(
  of_organisation_id bigint, of_prompt_id bigint, branch text, live_actions text[], at timestamptz, at_id bigint,
  not_of_commits text[] default '{}'
)
returns table (
  id bigint, action text, branch_name text, commit_sha text, created_at timestamptz, is_change boolean, is_after boolean
)
language sql
stable
as $$
  (
    select h.id, h.action, h.branch_name, h.commit_sha, h.created_at, h.is_change, false
    from history_entries h
    where h.organisation_id = of_organisation_id and h.prompt_id = of_prompt_id and (h.created_at, h.id) < (at, at_id)
      and array_position(live_actions, h.action) is not null and (branch is null or h.branch_name = branch)
      and lower(h.commit_sha) <> all (not_of_commits)
    order by h.created_at desc, h.id desc
    limit 1
  )
  union all
  (
    select h.id, h.action, h.branch_name, h.commit_sha, h.created_at, h.is_change, true
    from history_entries h
    where h.organisation_id = of_organisation_id and h.prompt_id = of_prompt_id and (h.created_at, h.id) > (at, at_id)
      and array_position(live_actions, h.action) is not null and (branch is null or h.branch_name = branch)
      and lower(h.commit_sha) <> all (not_of_commits)
    order by h.created_at, h.id
    limit 1
  )
$$;

-- Updates the count, the version and the markers of a history. `changes` is a JSON array of objects with created_at, id and
-- added: 1 for an added entry, -1 for a removed one. A changed entry has one of each. Returns the live branch, and what is
-- live just before and after each of these places now.
create function update_history_counts(
  given_organisation_id bigint, given_prompt_id bigint, changes json, live_actions text[]
)
returns json
language plpgsql
as $$
declare
  earliest timestamptz;
  total bigint;
  new_count bigint;
  live text;
  last_rank bigint;
  has_later boolean;
begin
  select min(c.created_at), sum(c.added) into earliest, total
  from json_to_recordset(changes) c (created_at timestamptz, added integer);

  update prompts p
  set history_version = default, history_count = p.history_count + total
  where p.organisation_id = given_organisation_id and p.id = given_prompt_id
  returning p.history_count, p.live_branch into new_count, live;

  select r.rank, r.created_at >= earliest into last_rank, has_later
  from history_ranks r
  where r.organisation_id = given_organisation_id and r.prompt_id = given_prompt_id
  order by r.created_at desc, r.entry_id desc
  limit 1;

  if has_later then
    update history_ranks r
    set rank = r.rank + m.shift
    from (
      select
        p.created_at, p.id, p.is_marker,
        -- A marker does not count the entry at its own position, so markers sort before entries.
        sum(p.added) over (order by p.created_at, p.id, p.is_marker desc rows unbounded preceding) as shift
      from (
        select c.created_at, c.id, c.added, false as is_marker
        from json_to_recordset(changes) c (created_at timestamptz, id bigint, added integer)
        union all
        select r.created_at, r.entry_id, 0, true
        from history_ranks r
        where r.organisation_id = given_organisation_id and r.prompt_id = given_prompt_id and r.created_at >= earliest
      ) p
    ) m
    where m.is_marker and m.shift <> 0 and r.organisation_id = given_organisation_id and r.prompt_id = given_prompt_id
      and r.created_at = m.created_at and r.entry_id = m.id;
  end if;
  -- Most entries are the newest of their history, and need no marker.
  if has_later or new_count - coalesce(last_rank, 0) > 500 then
    perform add_history_ranks(given_organisation_id, given_prompt_id, new_count, earliest);
  end if;

  return json_build_object('live_branch', live, 'near', array(
    select distinct to_jsonb(n)
    from json_to_recordset(changes) c (created_at timestamptz, id bigint)
    cross join lateral live_neighbours(
      given_organisation_id, given_prompt_id, live, live_actions, c.created_at, c.id
    ) n
  ));
end
$$;
