-- As before, but reads no more of a history than what comes after the new entries.
-- Moves a batch into the histories. Each entry takes its place by time; ties go after what is there. An entry
-- that is there already, or twice in the batch, is passed over. Answers how many are new, and the id that all
-- of them are above.
create or replace function merge_history(batch_id bigint, out added bigint, out above_id bigint)
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
    history_version = p.history_version + 1,
    history_count = (
      select h.seq from history_entries h where h.prompt_id = p.id order by h.seq desc limit 1
    )
  where p.id = any(prompt_ids);
end
$$;
