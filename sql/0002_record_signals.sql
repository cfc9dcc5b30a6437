-- Records as many of the given signals as the months of their organisations have room for, and counts
-- them, in one transaction. Answers every position: the id of the signal, or null when it was refused,
-- with the count after it and the limit in force.
create function record_signals(
  organisation_ids bigint[],
  prompt_ids bigint[],
  signal_values text[],
  metadata_texts text[],
  created_ats timestamptz[]
)
returns table (item bigint, signal_id bigint, used_after integer, limit_now integer)
language plpgsql
as $$
begin
  insert into signal_usage (organisation_id, month, used)
  select distinct a.organisation_id, date_trunc('month', a.created_at at time zone 'utc')::date, 0
  from unnest(organisation_ids, created_ats) a (organisation_id, created_at)
  order by 1, 2
  on conflict do nothing;

  -- Locked in a fixed order, so that no two batches wait for each other.
  perform
  from signal_usage u
  where (u.organisation_id, u.month) in (
    select a.organisation_id, date_trunc('month', a.created_at at time zone 'utc')::date
    from unnest(organisation_ids, created_ats) a (organisation_id, created_at)
  )
  order by u.organisation_id, u.month
  for update;

  -- A new statement has a new snapshot: it sees what the holders of the locks before us committed.
  return query
  with asked as (
    select a.*, date_trunc('month', a.created_at at time zone 'utc')::date as month
    from unnest(organisation_ids, prompt_ids, signal_values, metadata_texts, created_ats)
      with ordinality a (organisation_id, prompt_id, value, metadata, created_at, item)
  ), judged as (
    select
      asked.*,
      u.used,
      coalesce(o.monthly_limit, p.monthly_limit) as monthly_limit,
      row_number() over (partition by asked.organisation_id, asked.month order by asked.item)::integer as nth
    from asked
    join signal_usage u using (organisation_id, month)
    join organisations o on o.id = asked.organisation_id
    join plans p on p.name = o.plan
  ), decided as (
    select
      judged.*,
      case
        when used + nth <= monthly_limit
        then nextval(pg_get_serial_sequence('signals', 'id'))
      end as new_id
    from judged
  ), written as (
    insert into signals (id, organisation_id, prompt_id, value, metadata, created_at)
    overriding system value
    select new_id, organisation_id, prompt_id, value, metadata::jsonb, created_at
    from decided
    where new_id is not null
  ), counted as (
    update signal_usage u
    set used = u.used + granted.number
    from (
      select organisation_id, month, count(new_id)::integer as number
      from decided
      where new_id is not null
      group by organisation_id, month
    ) granted
    where u.organisation_id = granted.organisation_id and u.month = granted.month
  )
  select
    decided.item,
    decided.new_id,
    decided.used + least(decided.nth, greatest(decided.monthly_limit - decided.used, 0)),
    decided.monthly_limit
  from decided
  order by decided.item;
end
$$;
