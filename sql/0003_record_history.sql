-- Adds entries (a JSON array of objects with the columns' names) to the histories of their prompts.
-- Each takes its place by time; ties go after what is there. Answers the new ids in the order given.
create function record_history(entries jsonb)
returns table (item bigint, entry_id bigint)
language plpgsql
as $$
begin
  -- Writers to one prompt take turns; the fixed order keeps two imports from waiting for each other.
  perform
  from prompts p
  where p.id in (select (e ->> 'prompt_id')::bigint from jsonb_array_elements(entries) e)
  order by p.id
  for no key update;

  return query
  with given as (
    select g.*, e.item, nextval(pg_get_serial_sequence('history_entries', 'id')) as id
    from jsonb_array_elements(entries) with ordinality e (entry, item),
      jsonb_to_record(e.entry) as g (
        prompt_id bigint, action text, user_name text, user_email text, commit_sha text,
        branch_name text, pr_number integer, pr_url text, created_at timestamptz(3)
      )
    order by e.item
  ), written as (
    insert into history_entries (
      id, organisation_id, prompt_id, seq, action, user_name, user_email, commit_sha,
      branch_name, pr_number, pr_url, created_at
    )
    overriding system value
    select
      g.id, p.organisation_id, p.id,
      p.history_count + row_number() over (partition by p.id order by g.created_at, g.id),
      g.action, g.user_name, g.user_email, g.commit_sha,
      g.branch_name, g.pr_number, g.pr_url, g.created_at
    from given g
    join prompts p on p.id = g.prompt_id
  )
  select given.item, given.id from given order by given.item;

  -- Late arrivals: everything from the earliest of them on is numbered anew.
  with fresh as (
    select p.id as prompt_id, p.history_count, min(h.created_at) as since
    from prompts p
    join history_entries h on h.prompt_id = p.id and h.seq > p.history_count
    where p.id in (select (e ->> 'prompt_id')::bigint from jsonb_array_elements(entries) e)
    group by p.id
  ), late as (
    select
      f.prompt_id,
      f.since,
      coalesce((
        select h.seq from history_entries h
        where h.prompt_id = f.prompt_id and h.created_at < f.since
        order by h.created_at desc, h.id desc
        limit 1
      ), 0) as before
    from fresh f
    join history_entries last on last.prompt_id = f.prompt_id and last.seq = f.history_count
    where f.since < last.created_at
  ), placed as (
    select h.id, l.before + row_number() over (partition by h.prompt_id order by h.created_at, h.id) as seq
    from late l
    join history_entries h on h.prompt_id = l.prompt_id and h.created_at >= l.since
  )
  update history_entries h
  set seq = placed.seq
  from placed
  where h.id = placed.id and h.seq <> placed.seq;

  update prompts p
  set history_count = p.history_count + added.number
  from (
    select (e ->> 'prompt_id')::bigint as prompt_id, count(*) as number
    from jsonb_array_elements(entries) e
    group by 1
  ) added
  where p.id = added.prompt_id;
end
$$;
