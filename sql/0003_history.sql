-- The entries of a prompt are numbered 1, 2, 3 … in order of time, so that a page is a range of seq
-- and costs the same at any depth. No foreign keys, here and below: prompts are never deleted, merge_history and
-- write_signals are the only writers, and a check for each row would cost more than the row.
create table history_entries (
  id bigint generated always as identity primary key,
  organisation_id bigint not null,
  prompt_id bigint not null,
  seq bigint not null check (seq > 0),
  action text not null check (action in ('deployed', 'pr_opened', 'pr_merged', 'pr_closed')),
  user_name text not null,
  user_email text not null,
  commit_sha text not null,
  branch_name text not null,
  pr_number integer check (pr_number > 0),
  pr_url text,
  created_at timestamptz(3) not null,
  -- Deferrable, so that one statement may shift many numbers by one.
  unique (prompt_id, seq) deferrable initially immediate,
  -- What makes an entry the same when it is told again.
  unique nulls not distinct (prompt_id, commit_sha, action, pr_number),
  check (
    case action
      when 'deployed' then pr_number is null and pr_url is null
      else pr_number is not null and pr_url is not null
    end
  )
);

create index on history_entries (prompt_id, created_at, id);
create index on history_entries (prompt_id, action, seq);
create index on history_entries (prompt_id, branch_name, seq);

-- Where entries wait to be merged into the histories of their prompts, each batch for itself. Nothing here
-- outlives its transaction, so nothing of it is written to the log.
create unlogged table history_incoming (
  batch bigint not null,
  item bigint not null,
  prompt_id bigint not null,
  action text not null,
  user_name text not null,
  user_email text not null,
  commit_sha text not null,
  branch_name text not null,
  pr_number integer,
  pr_url text,
  created_at timestamptz(3) not null,
  primary key (batch, item)
);

create sequence history_batches;

-- Moves a batch into the histories. Each entry takes its place by time; ties go after what is there. An entry
-- that is there already, or twice in the batch, is passed over. Answers how many are new, and the id that all
-- of them are above.
create function merge_history(batch_id bigint, out added bigint, out above_id bigint)
language plpgsql
as $$
declare
  prompt_ids bigint[];
  -- The time of the earliest new entry of each.
  earliest timestamptz[];
  late record;
begin
  -- Writers to one prompt take turns; the fixed order keeps two batches from waiting for each other.
  perform
  from prompts p
  where p.id in (select i.prompt_id from history_incoming i where i.batch = batch_id)
  order by p.id
  for no key update;

  above_id := nextval('history_entries_id_seq');

  with fresh as (
    select distinct on (i.prompt_id, i.commit_sha, i.action, i.pr_number) i.*
    from history_incoming i
    where i.batch = batch_id
      and not exists (
        select from history_entries h
        where h.prompt_id = i.prompt_id
          and h.commit_sha = i.commit_sha
          and h.action = i.action
          and h.pr_number is not distinct from i.pr_number
      )
    order by i.prompt_id, i.commit_sha, i.action, i.pr_number, i.item
  ), written as (
    insert into history_entries (
      organisation_id, prompt_id, seq, action, user_name, user_email, commit_sha,
      branch_name, pr_number, pr_url, created_at
    )
    select
      p.organisation_id, p.id,
      p.history_count + row_number() over (partition by p.id order by f.created_at, f.item),
      f.action, f.user_name, f.user_email, f.commit_sha, f.branch_name, f.pr_number, f.pr_url, f.created_at
    from fresh f
    join prompts p on p.id = f.prompt_id
    order by p.id, f.created_at, f.item
    returning prompt_id, created_at
  ), per_prompt as (
    select prompt_id, count(*) as number, min(created_at) as since from written group by prompt_id
  )
  select array_agg(prompt_id), array_agg(since), coalesce(sum(number), 0)
  into prompt_ids, earliest, added
  from per_prompt;

  -- Late arrivals: everything from the earliest of them on is numbered anew. One prompt at a time, from a time that is
  -- known when the statement is planned: else a third of all entries are taken to be late, and every one is read.
  for late in
    select f.prompt_id, f.since
    from unnest(prompt_ids, earliest) f (prompt_id, since)
    join prompts p on p.id = f.prompt_id
    cross join lateral (
      select h.created_at from history_entries h where h.prompt_id = p.id and h.seq = p.history_count limit 1
    ) last
    where f.since < last.created_at
  loop
    update history_entries h
    set seq = placed.seq
    from (
      select
        h.id,
        coalesce((
          select b.seq from history_entries b
          where b.prompt_id = late.prompt_id and b.created_at < late.since
          order by b.created_at desc, b.id desc
          limit 1
        ), 0) + row_number() over (order by h.created_at, h.id) as seq
      from history_entries h
      where h.prompt_id = late.prompt_id and h.created_at >= late.since
    ) placed
    where h.id = placed.id and h.seq <> placed.seq;
  end loop;

  update prompts p
  set
    history_version = default,
    history_count = (
      select h.seq from history_entries h where h.prompt_id = p.id order by h.seq desc limit 1
    )
  where p.id = any(prompt_ids);
end
$$;

-- Adds entries, a JSON array of objects with the names of the columns, and answers each in the order given:
-- the entry as it stands in the history, and whether it is new there.
create function record_history(given jsonb)
returns table (
  id bigint, is_new boolean, action text, user_name text, user_email text, commit_sha text, branch_name text,
  pr_number integer, pr_url text, created_at timestamptz
)
language plpgsql
as $$
declare
  batch_id bigint := nextval('history_batches');
  known_id bigint;
begin
  insert into history_incoming
  select
    batch_id, e.item, g.prompt_id, g.action, g.user_name, g.user_email, g.commit_sha, g.branch_name,
    g.pr_number, g.pr_url, g.created_at
  from jsonb_array_elements(given) with ordinality e (entry, item),
    jsonb_to_record(e.entry) as g (
      prompt_id bigint, action text, user_name text, user_email text, commit_sha text,
      branch_name text, pr_number integer, pr_url text, created_at timestamptz
    );

  select m.above_id into known_id from merge_history(batch_id) m;

  return query
  select
    h.id, h.id > known_id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name,
    h.pr_number, h.pr_url, h.created_at
  from history_incoming i
  join history_entries h on h.prompt_id = i.prompt_id
    and h.commit_sha = i.commit_sha
    and h.action = i.action
    and h.pr_number is not distinct from i.pr_number
  where i.batch = batch_id
  order by i.item;

  delete from history_incoming i where i.batch = batch_id;
end
$$;
