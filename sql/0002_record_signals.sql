-- A changed limit is told to every replica, so that none goes on refusing what now has room.
create function announce_organisation()
returns trigger
language plpgsql
as $$
begin
  perform pg_notify('organisations', new.id::text);
  return null;
end
$$;

create trigger announce after update on organisations
for each row execute function announce_organisation();

-- Which signal a caller's Idempotency-Key stands for.
create table idempotency_keys (
  organisation_id bigint not null,
  key text not null check (length(key) between 1 and 255),
  signal_id bigint not null,
  created_at timestamptz(3) not null,
  primary key (organisation_id, key)
);

create index on idempotency_keys (created_at);

-- Records as many of the given signals as the months of their organisations have room for, and counts
-- them, in one transaction. Answers every item:
--   recorded  the id is new
--   refused   there was no room; id null
--   repeated  the idempotency key stands for this same signal already: its id and time
--   differs   the idempotency key stands for another signal
-- with the count after it and the limit in force.
-- The months are given once each, in a fixed order, so that no two calls wait for each other; an item names its
-- month by position. An idempotency key may be given only once in a call.
create function record_signals(
  organisation_ids bigint[],
  months date[],
  month_numbers integer[],
  prompt_ids bigint[],
  signal_values text[],
  metadata_texts text[],
  created_ats timestamptz[],
  repeat_keys text[]
)
returns table (
  item bigint, outcome text, signal_id bigint, recorded_at timestamptz, used_after integer, limit_now integer
)
language plpgsql
-- Rows held by somebody else are given up quickly: the caller then asks again for that organisation alone.
set lock_timeout = '200ms'
-- The plan is the same for any batch, and making it anew would cost more than running it.
set plan_cache_mode = 'force_generic_plan'
as $$
begin
  if cardinality(months) > (
    select count(*)
    from unnest(organisation_ids, months) m (organisation_id, month)
    join signal_usage u using (organisation_id, month)
  ) then
    insert into signal_usage (organisation_id, month, used)
    select m.organisation_id, m.month, 0
    from unnest(organisation_ids, months) m (organisation_id, month)
    on conflict do nothing;
  end if;

  return query
  with held as (
    -- After a wait this reads the row as the one before us left it.
    select m.number, u.organisation_id, u.month, u.used
    from unnest(organisation_ids, months) with ordinality m (organisation_id, month, number)
    join signal_usage u using (organisation_id, month)
    order by m.number
    for update of u
  ), room as materialized (
    select h.*, coalesce(o.monthly_limit, p.monthly_limit) as monthly_limit
    from held h
    join organisations o on o.id = h.organisation_id
    join plans p on p.name = o.plan
  ), asked as (
    select
      a.item, a.prompt_id, a.value, a.metadata::jsonb as metadata, a.created_at, a.repeat_key,
      room.organisation_id, room.month, room.used, room.monthly_limit
    from unnest(month_numbers, prompt_ids, signal_values, metadata_texts, created_ats, repeat_keys)
      with ordinality a (month_number, prompt_id, value, metadata, created_at, repeat_key, item)
    join room on room.number = a.month_number
  ), judged as (
    select
      asked.*, s.id as known_id, s.created_at as known_at,
      (s.prompt_id, s.value) = (asked.prompt_id, asked.value) and s.metadata is not distinct from asked.metadata as same,
      (count(*) filter (where s.id is null)
        over (partition by asked.organisation_id, asked.month order by asked.item))::integer as nth
    from asked
    left join idempotency_keys k on k.organisation_id = asked.organisation_id and k.key = asked.repeat_key
    left join signals s on s.id = k.signal_id
  ), decided as (
    select
      judged.*,
      case
        when known_id is null and used + nth <= monthly_limit
        then nextval('signals_id_seq')
      end as new_id
    from judged
  ), written as (
    insert into signals (id, organisation_id, prompt_id, value, metadata, created_at)
    overriding system value
    select new_id, organisation_id, prompt_id, value, metadata, created_at
    from decided
    where new_id is not null
  ), remembered as (
    insert into idempotency_keys (organisation_id, key, signal_id, created_at)
    select organisation_id, repeat_key, new_id, created_at
    from decided
    where new_id is not null and repeat_key is not null
  ), counted as (
    update signal_usage u
    set used = u.used + granted.number
    from (
      select organisation_id, month, count(*)::integer as number
      from decided
      where new_id is not null
      group by organisation_id, month
    ) granted
    where u.organisation_id = granted.organisation_id and u.month = granted.month
  )
  select
    d.item,
    case
      when d.new_id is not null then 'recorded'
      when d.known_id is null then 'refused'
      when d.same then 'repeated'
      else 'differs'
    end,
    coalesce(d.new_id, d.known_id),
    coalesce(d.known_at, d.created_at),
    d.used + least(d.nth, greatest(d.monthly_limit - d.used, 0)),
    d.monthly_limit
  from decided d
  order by d.item;
end
$$;
