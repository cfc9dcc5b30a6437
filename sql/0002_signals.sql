create table signals (
  id bigint generated always as identity primary key,
  organisation_id bigint not null,
  prompt_id bigint not null,
  value text not null check (value in ('positive', 'negative')),
  metadata jsonb check (jsonb_typeof(metadata) = 'object'),
  created_at timestamptz(3) not null
);

create table signal_usage (
  organisation_id bigint not null references organisations,
  month date not null check (extract(day from month) = 1),
  used integer not null check (used >= 0),
  primary key (organisation_id, month)
);

-- Which signal a caller's Idempotency-Key stands for.
create table idempotency_keys (
  organisation_id bigint not null,
  key text not null check (length(key) between 1 and 255),
  signal_id bigint not null,
  created_at timestamptz(3) not null,
  primary key (organisation_id, key)
);

create index on idempotency_keys (created_at);

-- Records as many of the given signals as the months of their organisations have room for, and counts them, in one
-- transaction.
-- The months are given once each, in a fixed order, so that no two calls wait for each other. A signal names its month
-- by position. Of the signals of a month, the first ones get the room.
create function write_signals(
  organisation_ids bigint[],
  months date[],
  -- How many signals are given for each month.
  asked integer[],
  month_numbers integer[],
  -- The place of each signal among those of its month.
  nths integer[],
  prompt_ids bigint[],
  signal_values text[],
  -- Texts that each hold an object, or nulls.
  metadata_texts json,
  created_ats timestamptz[],
  -- Texts or nulls, each text only once; null when there is none.
  repeat_keys json,

  -- Of each month: the count and the limit after it, and how many were recorded.
  out counts integer[],
  out limits integer[],
  out granted integer[],
  -- Of those recorded, in order.
  out ids bigint[],
  -- Of the signals whose idempotency key stands for one already: position, id, time, and whether it is the same.
  out known json
)
language plpgsql
-- Rows held by somebody else are given up quickly: the caller then asks again for that organisation alone.
set lock_timeout = '200ms'
-- The plans are the same for any batch, and making them anew would cost more than running them.
set plan_cache_mode = 'force_generic_plan'
as $$
declare
  is_over boolean;
begin
  if repeat_keys is not null then
    -- Held before the keys are looked up, so that what others record under the same ones is seen.
    insert into signal_usage (organisation_id, month, used)
    select m.organisation_id, m.month, 0
    from unnest(organisation_ids, months) m (organisation_id, month)
    on conflict (organisation_id, month) do update set used = 0 where false;

    with found as (
      select
        a.item, a.month_number, s.id, s.created_at,
        (s.prompt_id, s.value) = (a.prompt_id, a.value)
          and s.metadata is not distinct from a.metadata::jsonb as same
      from rows from (
        unnest(month_numbers, prompt_ids, signal_values),
        json_array_elements_text(metadata_texts),
        json_array_elements_text(repeat_keys)
      ) with ordinality a (month_number, prompt_id, value, metadata, repeat_key, item)
      left join idempotency_keys k on k.organisation_id = organisation_ids[a.month_number] and k.key = a.repeat_key
      left join signals s on s.id = k.signal_id
    )
    select
      json_agg(json_build_array(n.item, n.id, n.created_at, n.same)) filter (where n.id is not null),
      array_agg(case when n.id is null then n.nth end order by n.item)
    into known, nths
    from (
      select f.*, count(*) filter (where f.id is null) over (partition by f.month_number order by f.item) as nth
      from found f
    ) n;

    if known is not null then
      asked := array(
        select count(a.nth)
        from generate_series(1, cardinality(months)) m (number)
        left join unnest(month_numbers, nths) a (month_number, nth) on a.month_number = m.number
        group by m.number
        order by m.number
      );
    end if;
  end if;

  -- Counted before it is known whether there is room: so every row is found and locked once. The rows are locked in the
  -- order given, and without a join nothing is worked out again after a wait.
  with counted as (
    insert into signal_usage as u (organisation_id, month, used)
    select m.organisation_id, m.month, m.asked
    from unnest(organisation_ids, months, asked) m (organisation_id, month, asked)
    on conflict (organisation_id, month) do update set used = u.used + excluded.used
    returning u.used, (
      select coalesce(o.monthly_limit, p.monthly_limit)
      from organisations o
      join plans p on p.name = o.plan
      where o.id = u.organisation_id
    ) as monthly_limit
  )
  select array_agg(c.used), array_agg(c.monthly_limit), bool_or(c.used > c.monthly_limit)
  into counts, limits, is_over
  from counted c;

  granted := asked;
  if is_over then
    select array_agg(greatest(least(m.asked, m.monthly_limit - m.used + m.asked), 0))
    into granted
    from unnest(asked, counts, limits) m (asked, used, monthly_limit);

    select array_agg(m.used - m.asked + m.granted)
    into counts
    from unnest(asked, counts, granted) m (asked, used, granted);

    update signal_usage u
    set used = m.used
    from unnest(organisation_ids, months, counts) m (organisation_id, month, used)
    where u.organisation_id = m.organisation_id and u.month = m.month;
  end if;

  with written as (
    insert into signals (organisation_id, prompt_id, value, metadata, created_at)
    select organisation_ids[a.month_number], a.prompt_id, a.value, a.metadata::jsonb, a.created_at
    from rows from (
      unnest(month_numbers, nths, prompt_ids, signal_values, created_ats),
      json_array_elements_text(metadata_texts)
    ) a (month_number, nth, prompt_id, value, created_at, metadata)
    where a.nth <= granted[a.month_number]
    returning id
  )
  select array_agg(w.id) into ids from written w;

  if repeat_keys is not null then
    insert into idempotency_keys (organisation_id, key, signal_id, created_at)
    select organisation_ids[a.month_number], a.repeat_key, ids[a.place], a.created_at
    from (
      select a.*, row_number() over (order by a.item) as place
      from rows from (unnest(month_numbers, nths, created_ats), json_array_elements_text(repeat_keys))
        with ordinality a (month_number, nth, created_at, repeat_key, item)
      where a.nth <= granted[a.month_number]
    ) a
    where a.repeat_key is not null;
  end if;
end
$$;
