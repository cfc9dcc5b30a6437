-- Rollups: counts of signals by time and by the commit they name, so that a report reads thousands of rows, not millions.

-- A row is the watermark of one prompt: its rollups hold the signals up to `last_rolled_up_id`. A reader takes the
-- watermark, the rollups and the signals after the watermark (the tail) from one snapshot, so its sums equal the rows.
-- No signal ever appears below the watermark: write_signals locks the organisation before it draws ids, so the ids of
-- one organisation commit in their order.
create table signal_watermarks (
  organisation_id bigint not null,
  prompt_id bigint not null,
  last_rolled_up_id bigint not null,
  primary key (organisation_id, prompt_id)
);

-- A row counts the signals of one prompt in a quarter hour (15) or a day (1440), UTC. In every time zone of today, days begin
-- at a quarter hour.
create table signal_counts (
  organisation_id bigint not null,
  prompt_id bigint not null,
  minutes integer not null check (minutes in (15, 1440)),
  start timestamptz(3) not null,
  positive bigint not null check (positive >= 0),
  negative bigint not null check (negative >= 0),
  primary key (organisation_id, prompt_id, minutes, start)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);

-- A row counts the signals of one prompt and time that name one commit. A client may name a new commit with every signal,
-- so these counts have their own table, and a key that finds known commits among any number of others.
create table signal_commit_counts (
  organisation_id bigint not null,
  prompt_id bigint not null,
  commit_sha text collate "C" not null check (commit_sha <> ''),
  minutes integer not null check (minutes in (15, 1440)),
  start timestamptz(3) not null,
  positive bigint not null check (positive >= 0),
  negative bigint not null check (negative >= 0),
  primary key (organisation_id, prompt_id, minutes, commit_sha, start)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);

-- Like signals_owner.
create statistics signal_counts_owner (dependencies) on prompt_id, organisation_id from signal_counts;
create statistics signal_commit_counts_owner (dependencies) on prompt_id, organisation_id from signal_commit_counts;

-- Finds the idempotency key of a signal that is erased.
create index on idempotency_keys (prompt_id, signal_id);

-- The commit that a signal names in its metadata, in lower case. Null for a value that no history entry can have.
create function commit_of_signal(metadata jsonb)
returns text
language sql
immutable
as $$
  select case
    -- `between` would look the string up twice.
    when jsonb_typeof(metadata -> 'commit_sha') = 'string' and length(metadata ->> 'commit_sha') <@ int4range(1, 100, '[]')
    then lower((metadata ->> 'commit_sha') collate "C")
  end
$$;

create function floor_minutes(instant timestamptz, minutes integer)
returns timestamptz
language sql
immutable
as $$
  select date_bin(make_interval(mins => minutes), instant, timestamptz '2000-01-01 00:00:00Z')
$$;

-- Adds counts to the rollups of a prompt (`factor` 1) or subtracts them (-1), and deletes those that become zero. Each count
-- has a quarter hour, and a commit or null. The caller has locked the watermark, so a ctid stays the same.
create function add_to_signal_counts(
  given_organisation_id bigint, given_prompt_id bigint,
  quarters timestamptz[], commits text[], positives bigint[], negatives bigint[], factor integer
)
returns void
language plpgsql
as $$
declare
  empty_rows tid[];
begin
  with changed as (
    insert into signal_counts as c (organisation_id, prompt_id, minutes, start, positive, negative)
    select
      given_organisation_id, given_prompt_id, w.minutes, floor_minutes(s.quarter, w.minutes), sum(s.positive), sum(s.negative)
    from unnest(quarters, positives, negatives) s (quarter, positive, negative)
    cross join (values (15), (1440)) w (minutes)
    group by 3, 4
    on conflict (organisation_id, prompt_id, minutes, start) do update
    set positive = c.positive + factor * excluded.positive, negative = c.negative + factor * excluded.negative
    returning c.ctid as row_ctid, c.positive + c.negative = 0 as is_empty
  )
  select array_agg(c.row_ctid) into empty_rows from changed c where c.is_empty;
  delete from signal_counts c where c.ctid = any (empty_rows);

  with changed as (
    insert into signal_commit_counts as c (organisation_id, prompt_id, commit_sha, minutes, start, positive, negative)
    select
      given_organisation_id, given_prompt_id, s.commit_sha, w.minutes, floor_minutes(s.quarter, w.minutes),
      sum(s.positive), sum(s.negative)
    from unnest(quarters, commits, positives, negatives) s (quarter, commit_sha, positive, negative)
    cross join (values (15), (1440)) w (minutes)
    where s.commit_sha is not null
    group by 3, 4, 5
    on conflict (organisation_id, prompt_id, minutes, commit_sha, start) do update
    set positive = c.positive + factor * excluded.positive, negative = c.negative + factor * excluded.negative
    returning c.ctid as row_ctid, c.positive + c.negative = 0 as is_empty
  )
  select array_agg(c.row_ctid) into empty_rows from changed c where c.is_empty;
  delete from signal_commit_counts c where c.ctid = any (empty_rows);
end
$$;

-- Locks the watermark of a prompt until the transaction ends. Creates it for a prompt that has signals but no watermark, so
-- that an erasure also blocks the first rollup. Returns null for a prompt without signals.
create function lock_watermark(given_organisation_id bigint, given_prompt_id bigint)
returns signal_watermarks
language plpgsql
as $$
declare
  watermark signal_watermarks;
begin
  select w.* into watermark
  from signal_watermarks w
  where w.organisation_id = given_organisation_id and w.prompt_id = given_prompt_id
  for update;
  if not found then
    insert into signal_watermarks (organisation_id, prompt_id, last_rolled_up_id)
    select p.organisation_id, p.id, 0
    from prompts p
    where p.organisation_id = given_organisation_id and p.id = given_prompt_id and exists (
      select from signals s where s.organisation_id = p.organisation_id and s.prompt_id = p.id
    )
    on conflict do nothing;
    select w.* into watermark
    from signal_watermarks w
    where w.organisation_id = given_organisation_id and w.prompt_id = given_prompt_id
    for update;
  end if;
  return watermark;
end
$$;

-- Rolls up the next signals of a prompt, at most `max_rows`. Returns the number of signals rolled up. The transaction does
-- not wait for the disk: a rollup that a crash loses is repeated.
create function roll_up_signals(given_organisation_id bigint, given_prompt_id bigint, max_rows integer)
returns integer
language plpgsql
as $$
declare
  watermark signal_watermarks := lock_watermark(given_organisation_id, given_prompt_id);
  is_set boolean := set_config('synchronous_commit', 'off', true) is not null;
  taken record;
begin
  select
    coalesce(sum(q.total), 0) as number, max(q.last_id) as last_id, array_agg(q.quarter) as quarters,
    array_agg(commit_of_signal(q.metadata)) as commits, array_agg(q.positive) as positives,
    array_agg(q.total - q.positive) as negatives
  into taken
  from (
    select
      -- commit_of_signal runs once per group: for every signal it would take a third of the time.
      jsonb_build_object('commit_sha', s.text) as metadata, floor_minutes(s.created_at, 15) as quarter, max(s.id) as last_id,
      count(*) as total, count(*) filter (where s.value = 'positive') as positive
    from (
      select
        s.id, s.value, s.created_at,
        case when jsonb_typeof(s.metadata -> 'commit_sha') = 'string' then s.metadata ->> 'commit_sha' end
          collate "C" as text
      from (
        select s.id, s.value, s.created_at, s.metadata
        from signals s
        where s.organisation_id = given_organisation_id and s.prompt_id = given_prompt_id
          and s.id > watermark.last_rolled_up_id
        order by s.prompt_id, s.id
        -- max_rows is never more. Without this constant, the planner expects a tenth of all signals, and sorts them.
        limit 100000
      ) s
      limit max_rows
    ) s
    group by quarter, s.text
  ) q;

  if taken.number > 0 then
    perform add_to_signal_counts(
      given_organisation_id, given_prompt_id, taken.quarters, taken.commits, taken.positives, taken.negatives, 1
    );
    update signal_watermarks w
    set last_rolled_up_id = taken.last_id
    where w.organisation_id = given_organisation_id and w.prompt_id = given_prompt_id;
  end if;
  return taken.number;
end
$$;

-- Erases the signals of an organisation's prompt that have these ids, also from the rollups. Returns the number erased. The
-- usage of the month stays. The idempotency key of a signal goes with it, or it would replay a signal that is gone.
create function erase_signals(given_organisation_id bigint, given_prompt_id bigint, signal_ids bigint[])
returns integer
language plpgsql
as $$
declare
  watermark signal_watermarks := lock_watermark(given_organisation_id, given_prompt_id);
  erased record;
begin
  -- Without a watermark the prompt had no signals. One recorded since stays: it may be rolled up by now.
  if watermark.organisation_id is distinct from given_organisation_id then
    return 0;
  end if;
  -- One statement: a second one might see a signal that was committed after the first one had looked for its key.
  with keys as (
    delete from idempotency_keys k
    where k.organisation_id = given_organisation_id and k.prompt_id = given_prompt_id and k.signal_id = any (signal_ids)
  ), deleted as (
    delete from signals s
    where s.organisation_id = given_organisation_id and s.prompt_id = given_prompt_id and s.id = any (signal_ids)
    returning s.value, s.created_at, s.metadata, s.id <= watermark.last_rolled_up_id as is_rolled_up
  ), counted as (
    select
      d.is_rolled_up, floor_minutes(d.created_at, 15) as quarter, commit_of_signal(d.metadata) as commit_sha,
      count(*) filter (where d.value = 'positive') as positive, count(*) filter (where d.value = 'negative') as negative
    from deleted d
    group by 1, 2, 3
  )
  select
    coalesce(sum(c.positive + c.negative), 0) as number, array_agg(c.quarter) filter (where c.is_rolled_up) as quarters,
    array_agg(c.commit_sha) filter (where c.is_rolled_up) as commits,
    array_agg(c.positive) filter (where c.is_rolled_up) as positives,
    array_agg(c.negative) filter (where c.is_rolled_up) as negatives
  into erased
  from counted c;

  if erased.quarters is not null then
    perform add_to_signal_counts(
      given_organisation_id, given_prompt_id, erased.quarters, erased.commits, erased.positives, erased.negatives, -1
    );
  end if;
  return erased.number;
end
$$;

-- Replaces the values and the metadata of a prompt's signals, each given once, also in the rollups.
create function replace_signals(
  given_organisation_id bigint, given_prompt_id bigint, signal_ids bigint[], new_values text[], new_metadata jsonb[]
)
returns void
language plpgsql
as $$
declare
  watermark signal_watermarks := lock_watermark(given_organisation_id, given_prompt_id);
  old_signals signals[];
  counted record;
begin
  select array_agg(s) into old_signals from signals s
  where s.organisation_id = given_organisation_id and s.prompt_id = given_prompt_id and s.id = any (signal_ids);
  if cardinality(old_signals) is distinct from cardinality(signal_ids) then
    -- The caller tries again.
    raise exception 'a signal was erased before it was replaced' using errcode = 'lock_not_available';
  end if;
  update signals s
  set value = g.value, metadata = g.metadata
  from unnest(signal_ids, new_values, new_metadata) g (id, value, metadata)
  where s.organisation_id = given_organisation_id and s.prompt_id = given_prompt_id and s.id = any (signal_ids)
    -- As texts: 0.10 equals 0.1, but is kept as it was sent.
    and s.id = g.id and (s.value, s.metadata::text) is distinct from (g.value, g.metadata::text);

  for counted in
    select
      c.factor, array_agg(floor_minutes(o.created_at, 15)) as quarters, array_agg(c.commit_sha) as commits,
      array_agg((c.value = 'positive')::integer::bigint) as positives,
      array_agg((c.value = 'negative')::integer::bigint) as negatives
    from unnest(old_signals) o
    join unnest(signal_ids, new_values, new_metadata) g (id, value, metadata) on g.id = o.id
    cross join lateral (
      values (1, g.value, commit_of_signal(g.metadata)), (-1, o.value, commit_of_signal(o.metadata))
    ) c (factor, value, commit_sha)
    where o.id <= watermark.last_rolled_up_id and (o.value, o.metadata) is distinct from (g.value, g.metadata)
    group by c.factor
    order by c.factor desc
  loop
    perform add_to_signal_counts(
      given_organisation_id, given_prompt_id, counted.quarters, counted.commits, counted.positives, counted.negatives,
      counted.factor
    );
  end loop;
end
$$;

-- Splits each span between two of the ascending bounds into parts that add up to it: whole days and quarter hours, which
-- the rollups hold, and less than a quarter hour (0 minutes) at either end. Days are rounded to the nearest midnight (UTC),
-- and quarter hours are added (sign 1) or subtracted (-1) to correct that: a day of most time zones takes fewer than 96.
create function parts_of_spans(bounds timestamptz[])
returns table (number integer, minutes integer, sign integer, low timestamptz, high timestamptz)
language sql
immutable
as $$
  with spans as materialized (
    select n as number, bounds[n] as low, bounds[n + 1] as high,
      least(floor_minutes(bounds[n] + interval '15 minutes' - interval '1 microsecond', 15), bounds[n + 1]) as first_quarter
    from generate_series(1, cardinality(bounds) - 1) n
  ), quarters as materialized (
    select s.*, greatest(floor_minutes(s.high, 15), s.first_quarter) as last_quarter from spans s
  ), days as materialized (
    select
      q.*, floor_minutes(q.first_quarter + interval '12 hours', 1440) as first_day,
      floor_minutes(q.last_quarter + interval '12 hours', 1440) as last_day
    from quarters q
  )
  select d.number, part.minutes, part.sign, part.low, part.high
  from days d
  cross join lateral (
    values
      (0, 1, d.low, d.first_quarter), (0, 1, d.last_quarter, d.high),
      (15, 1, d.first_quarter, d.first_day), (15, -1, d.first_day, d.first_quarter),
      (1440, 1, d.first_day, d.last_day),
      (15, 1, d.last_day, d.last_quarter), (15, -1, d.last_quarter, d.last_day)
  ) part (minutes, sign, low, high)
  where part.low < part.high and (d.first_day < d.last_day or part.minutes = 0)
  union all
  select d.number, 15, 1, d.first_quarter, d.last_quarter
  from days d
  where d.first_day = d.last_day and d.first_quarter < d.last_quarter
$$;

-- Counts the signals of a prompt between each two of the ascending bounds, the lower one included. Spans are numbered from 1.
-- Those without signals have no row.
create function count_signals_between(given_organisation_id bigint, given_prompt_id bigint, bounds timestamptz[])
returns table (number integer, positive bigint, negative bigint)
language plpgsql
stable
as $$
declare
  watermark bigint := coalesce((
    select w.last_rolled_up_id from signal_watermarks w
    where w.organisation_id = given_organisation_id and w.prompt_id = given_prompt_id
  ), 0);
begin
  return query
  with parts as materialized (select * from parts_of_spans(bounds))
  select found.number, sum(found.positive)::bigint, sum(found.negative)::bigint
  from (
    select p.number, p.sign * c.positive as positive, p.sign * c.negative as negative
    from parts p
    cross join lateral (
      select sum(c.positive) as positive, sum(c.negative) as negative
      from signal_counts c
      where c.organisation_id = given_organisation_id and c.prompt_id = given_prompt_id and c.minutes = p.minutes
        and c.start >= p.low and c.start < p.high
    ) c
    where p.minutes > 0 and c.positive is not null
    union all
    select p.number, s.positive, s.negative
    from parts p
    cross join lateral (
      select
        count(*) filter (where s.value = 'positive') as positive,
        count(*) filter (where s.value = 'negative') as negative
      from signals s
      where s.organisation_id = given_organisation_id and s.prompt_id = given_prompt_id and s.id <= watermark
        and s.created_at >= p.low and s.created_at < p.high
    ) s
    where p.minutes = 0 and s.positive + s.negative > 0
    union all
    -- The upper bound excludes nothing. It tells the planner that few signals are above the watermark.
    select t.number, (t.value = 'positive')::integer, (t.value = 'negative')::integer
    from (
      select width_bucket(s.created_at, bounds) as number, s.value
      from signals s
      where s.organisation_id = given_organisation_id and s.prompt_id = given_prompt_id
        and s.id between watermark + 1 and 9223372036854775807
    ) t
    where t.number between 1 and cardinality(bounds) - 1
  ) found
  group by found.number
  having sum(found.positive) + sum(found.negative) > 0;
end
$$;
