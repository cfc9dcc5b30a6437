-- What is written with every signal is checked by domains. The check of a table is parsed and planned anew by every
-- statement that writes to it, which was a seventh of the time of recording one signal; that of a domain is kept.
create domain signal_value as text check (value in ('positive', 'negative'));
create domain signal_metadata as jsonb check (jsonb_typeof(value) = 'object');
create domain month_start as date check (extract(day from value) = 1);
create domain signal_count as integer check (value >= 0);
create domain idempotency_key as text collate "C" check (length(value) between 1 and 255);

create table signals (
  id bigint generated always as identity,
  organisation_id bigint not null,
  prompt_id bigint not null,
  value signal_value not null,
  metadata signal_metadata,
  created_at timestamptz(3) not null,
  -- Ids come from one sequence. With the prompt in front, the key also finds what was recorded after a known signal.
  primary key (prompt_id, id)
);

-- The order in which signals are listed. Ids alone would not do: a signal of a batch may be of an earlier time.
create index on signals (prompt_id, created_at, id);

-- A row counts the signals that an organisation has recorded in a month.
--
-- `block` rises with every 200 signals and is part of the key only to keep the row easy to find. Each write leaves a dead
-- version of the row behind, and while a snapshot is held (by a backup, a report) none of them can be removed. Found by
-- the highest block, at most 200 versions are ever read; without it a minute of a held snapshot costs three quarters of
-- the rate. That there is only one row for a month is kept by write_signals, the only writer.
create table signal_usage (
  organisation_id bigint not null references organisations,
  month month_start not null,
  used signal_count not null,
  block integer not null default 0,
  primary key (organisation_id, month, block)
) with (fillfactor = 50);

-- How many signals a browser key, and those that it was rotated to, have recorded in a month: one row each, kept as those
-- of signal_usage are, and written by write_signals alone, under the lock of the key's organisation.
create table key_usage (
  key_id bigint not null references api_keys,
  month month_start not null,
  used signal_count not null,
  block integer not null default 0,
  primary key (key_id, month, block)
) with (fillfactor = 50);

-- A row maps a caller's Idempotency-Key to the signal that was recorded with it.
create table idempotency_keys (
  organisation_id bigint not null,
  key idempotency_key not null,
  prompt_id bigint not null,
  signal_id bigint not null,
  created_at timestamptz(3) not null,
  primary key (organisation_id, key)
);

create index on idempotency_keys (created_at);

-- Returns what each organisation has used of a month and its limit, by the position in the arrays; and the ctid of its
-- row, which is null before the first signal of the month.
create function usages_of(organisation_ids bigint[], months date[])
returns table (number bigint, row_ctid tid, used integer, monthly_limit integer)
language sql
stable
as $$
  select m.number, u.ctid, coalesce(u.used, 0), coalesce(o.monthly_limit, 0)
  from unnest(organisation_ids, months) with ordinality m (organisation_id, month, number)
  left join lateral (
    select u.ctid, u.used
    from signal_usage u
    where u.organisation_id = m.organisation_id and u.month = m.month
    order by u.block desc
    limit 1
  ) u on true
  left join lateral (
    select coalesce(o.monthly_limit, (select p.monthly_limit from plans p where p.name = o.plan)) as monthly_limit
    from organisations o
    where o.id = m.organisation_id
    limit 1
  ) o on true;
$$;

-- What each browser key has used of a month and its limit, which is null for none, by the position in the arrays.
create function key_usages_of(key_ids bigint[], months date[])
returns table (number bigint, used integer, block integer, monthly_limit integer)
language sql
stable
as $$
  select m.number, coalesce(u.used, 0), coalesce(u.block, 0), k.monthly_limit
  from unnest(key_ids, months) with ordinality m (key_id, month, number)
  left join lateral (
    select u.used, u.block
    from key_usage u
    where u.key_id = m.key_id and u.month = m.month
    order by u.block desc
    limit 1
  ) u on true
  left join lateral (
    select k.monthly_limit
    from api_keys k
    where k.id = m.key_id
    limit 1
  ) k on true;
$$;

-- Reads usages for callers outside of SQL functions. Statements of a hot path are planned once, perhaps while the tables are
-- empty, and the plan must not become a scan of what they hold later: every table is reached through a lateral look-up
-- that an index serves, from its newest entry on.
create function read_usages(organisation_ids bigint[], months date[])
returns table (number bigint, used integer, monthly_limit integer)
language plpgsql
stable
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
  return query select u.number, u.used, u.monthly_limit from usages_of(organisation_ids, months) u;
end
$$;

-- Deletes at most max_rows idempotency keys from before a time, and returns how many there were.
create function prune_idempotency_keys(before timestamptz, max_rows integer)
returns integer
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  deleted integer;
begin
  delete from idempotency_keys
  where ctid = any (array(
    select k.ctid
    from idempotency_keys k
    where k.created_at < before
    order by k.created_at
    limit max_rows
    for update skip locked
  ));
  get diagnostics deleted = row_count;
  return deleted;
end
$$;

-- Records as many of the given signals as the months of their organisations have room for, and counts them, in one
-- transaction. Of the signals of a month, the first ones get the room.
--
-- An organisation is locked until the transaction ends. So ids of one organisation are committed in the order in which
-- they are drawn, and what another call has recorded under the same idempotency key is seen.
create function write_signals(
  -- Each month of each organisation that the signals belong to, once, in ascending order of the organisations; and how
  -- many signals there are of it.
  organisation_ids bigint[],
  months date[],
  asked integer[],
  -- For each signal, the position of its organisation and month in the arrays above.
  month_numbers integer[],
  prompt_ids bigint[],
  are_positive boolean[],
  -- An array of objects and nulls; null when no signal has metadata.
  metadata_list jsonb,
  -- In milliseconds since 1970: a number is parsed in a tenth of the instructions of a date.
  created_ats bigint[],
  -- Texts or nulls, no text twice for one organisation; null when no signal has a key.
  keys text[],
  -- Each month of each browser key that the signals are counted with, once; and for each signal, the position of that key
  -- and month there, or null. All three are null when no signal came with a browser key.
  browser_key_ids bigint[] default null,
  browser_key_months date[] default null,
  browser_key_numbers integer[] default null,
  -- When the keys were sent, if that is not the time of each signal: they are kept by it.
  keys_sent_at timestamptz default null,

  -- For each month, a pair: the number of signals before this call, and the limit.
  out usages integer[],
  -- For each signal, its id, or null when it was not recorded.
  out ids bigint[],
  -- For each signal whose key was used before: position, id and time of the earlier signal, and whether it is the same.
  out replays json,
  -- For each month of a browser key, the number of its signals before this call, and its limit or null.
  out key_used_before integer[],
  out key_limits integer[]
)
language plpgsql
-- A lock that another transaction holds is given up soon: the caller then retries for that organisation alone.
set lock_timeout = '200ms'
-- The plans are the same for any batch, and making them anew would cost more than running them.
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
as $$
declare
  -- For each signal, its position among those of its month that may be recorded, from 1, or null for one that may not; null
  -- as a whole as long as all may.
  nths integer[];
  replayed bigint[];
  key_blocks integer[];
  is_full boolean;
  first_months bigint[];
  is_locked boolean;
begin
  -- Every statement must see what was committed before it got its lock.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'write_signals needs the isolation level read committed';
  end if;

  -- The locks are taken in the order given, so that no two calls deadlock; 5167 is the class of the advisory locks of
  -- organisations. An assignment takes a tenth of the time of a query.
  for number in 1 .. cardinality(organisation_ids) loop
    is_locked := pg_advisory_xact_lock(5167, organisation_ids[number]::integer) is not null;
  end loop;

  if keys is not null then
    select
      json_agg(json_build_array(a.position, s.id, s.created_at, s.is_same)),
      array_agg(a.position)
    into replays, replayed
    from unnest(keys) with ordinality a (key, position)
    cross join lateral (
      select k.prompt_id, k.signal_id
      from idempotency_keys k
      where k.organisation_id = organisation_ids[month_numbers[a.position]] and k.key = a.key
      limit 1
    ) k
    cross join lateral (
      select
        s.id, s.created_at,
        s.prompt_id = prompt_ids[a.position]
          and (s.value = 'positive') = are_positive[a.position]
          and s.metadata is not distinct from nullif(metadata_list -> (a.position::integer - 1), 'null') as is_same
      from signals s
      where s.prompt_id = k.prompt_id and s.id = k.signal_id
      limit 1
    ) s;

    if replays is not null then
      nths := array(
        select case when n.is_new then count(*) filter (where n.is_new) over of_month end
        from (
          select a.position, a.month_number, a.position <> all (replayed) as is_new
          from unnest(month_numbers) with ordinality a (month_number, position)
        ) n
        window of_month as (partition by n.month_number order by n.position)
        order by n.position
      );
    end if;
  end if;

  -- What exceeds the limit of its key takes no room of the organisation's: it gets no position among the signals of the month.
  if browser_key_numbers is not null then
    select
      array_agg(u.used order by u.number),
      array_agg(u.block order by u.number),
      array_agg(u.monthly_limit order by u.number)
    into key_used_before, key_blocks, key_limits
    from key_usages_of(browser_key_ids, browser_key_months) u;

    nths := array(
      select case when n.has_room then count(*) filter (where n.has_room) over of_month end
      from (
        select
          a.position, a.month_number,
          a.is_new and (
            a.key_number is null
            or key_limits[a.key_number] is null
            or count(*) filter (where a.is_new) over (partition by a.key_number order by a.position)
              <= key_limits[a.key_number] - key_used_before[a.key_number]
          ) as has_room
        from (
          select k.position, k.month_number, k.key_number, nths is null or k.nth is not null as is_new
          from unnest(month_numbers, nths, browser_key_numbers)
            with ordinality k (month_number, nth, key_number, position)
        ) a
      ) n
      window of_month as (partition by n.month_number order by n.position)
      order by n.position
    );
  end if;

  if nths is not null then
    asked := array(
      select coalesce(max(a.nth), 0)
      from unnest(month_numbers, nths) a (month_number, nth)
      group by a.month_number
      order by a.month_number
    );
  end if;

  -- The row of a month is updated by its ctid, which stays the same while the organisation is locked.
  with
    granted as materialized (
      select u.*, asked[u.number] as asked, least(asked[u.number], greatest(u.monthly_limit - u.used, 0)) as granted
      from usages_of(organisation_ids, months) u
    ),
    counted as (
      update signal_usage u
      set used = g.used + g.granted, block = (g.used + g.granted) / 200
      from granted g
      where u.ctid = g.row_ctid and g.granted > 0
    )
  select
    array_agg(array[g.used, g.monthly_limit] order by g.number),
    bool_or(g.granted < g.asked),
    array_agg(g.number) filter (where g.row_ctid is null and g.granted > 0),
    array(select nextval('signals_id_seq') from generate_series(1, cardinality(prompt_ids)))
  into usages, is_full, first_months, ids
  from granted g;

  if first_months is not null then
    insert into signal_usage (organisation_id, month, used, block)
    select organisation_ids[m.number], months[m.number], m.granted, m.granted / 200
    from (
      select f.number, least(asked[f.number], usages[f.number][2]) as granted
      from unnest(first_months) f (number)
    ) m;
  end if;

  if is_full and nths is null then
    nths := array(
      select row_number() over (partition by a.month_number order by a.position)
      from unnest(month_numbers) with ordinality a (month_number, position)
      order by a.position
    );
  end if;

  if nths is not null then
    ids := array(
      select case when a.nth <= usages[a.month_number][2] - usages[a.month_number][1] then a.id end
      from unnest(ids, month_numbers, nths) with ordinality a (id, month_number, nth, position)
      order by a.position
    );
  end if;

  -- The arrays are read by position: together in an unnest, each of them would first be copied to a table of its own.
  insert into signals (id, organisation_id, prompt_id, value, metadata, created_at)
  overriding system value
  select
    ids[n], organisation_ids[month_numbers[n]], prompt_ids[n], case when are_positive[n] then 'positive' else 'negative' end,
    nullif(metadata_list -> (n - 1), 'null'), to_timestamp(created_ats[n] / 1000::double precision)
  from generate_series(1, cardinality(ids)) n
  where ids[n] is not null;

  if browser_key_numbers is not null then
    insert into key_usage as u (key_id, month, block, used)
    select browser_key_ids[a.number], browser_key_months[a.number], key_blocks[a.number], count(*)
    from unnest(browser_key_numbers, ids) a (number, id)
    where a.number is not null and a.id is not null
    group by a.number
    on conflict (key_id, month, block) do update
    set used = u.used + excluded.used, block = (u.used + excluded.used) / 200;
  end if;

  if keys is not null then
    insert into idempotency_keys (organisation_id, key, prompt_id, signal_id, created_at)
    select
      organisation_ids[month_numbers[a.position]], a.key, prompt_ids[a.position], ids[a.position],
      coalesce(keys_sent_at, to_timestamp(created_ats[a.position] / 1000::double precision))
    from unnest(keys) with ordinality a (key, position)
    where a.key is not null and ids[a.position] is not null;
  end if;
end
$$;

-- The text that a caller gives to ask for a value of the metadata: a string as it is, anything else as JSON.
create function text_of_metadata(metadata jsonb, key text)
returns text
language sql
immutable
as $$
  select coalesce(metadata ->> key, (metadata -> key)::text)
$$;

-- Signals of a prompt before a position, newest first, at most so many; those of a value and from a time on, whose
-- metadata has the given texts. There is one upper bound alone: with a second one, the scan of the index may begin at the
-- wrong one, and read all that lies between. Looks at no more than `max_looked_at`: when that ends the search, the last
-- row is the position to go on from, and has no value.
create function list_signals(
  given_prompt_id bigint, before_time timestamptz, before_id bigint, since timestamptz,
  given_value text, metadata_keys text[], metadata_texts text[], max_rows integer, max_looked_at integer
)
returns table (id bigint, value text, metadata text, created_at timestamptz)
language plpgsql
stable
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
as $$
declare
  signal record;
  looked_at integer := 0;
  found_rows integer := 0;
begin
  for signal in
    select
      s.id, s.value, s.metadata, s.created_at,
      (given_value is null or s.value = given_value) and not exists (
        select from unnest(metadata_keys, metadata_texts) wanted (key, text)
        where text_of_metadata(s.metadata, wanted.key) is distinct from wanted.text
      ) as is_wanted
    from signals s
    where s.prompt_id = given_prompt_id
      and (s.created_at, s.id) < (before_time, before_id)
      and s.created_at >= since
    order by s.prompt_id desc, s.created_at desc, s.id desc
    limit max_looked_at
  loop
    looked_at := looked_at + 1;
    if signal.is_wanted then
      found_rows := found_rows + 1;
      id := signal.id;
      value := signal.value;
      metadata := signal.metadata::text;
      created_at := signal.created_at;
      return next;
      exit when found_rows = max_rows;
    end if;
  end loop;
  if looked_at = max_looked_at and found_rows < max_rows then
    id := signal.id;
    value := null;
    metadata := null;
    created_at := signal.created_at;
    return next;
  end if;
end
$$;
