-- How many signals there are by time, and by the commit that they name, so that nobody has to read ten million of them.
--
-- The counts run behind, up to a watermark: those of a prompt hold its signals with ids up to `counted_to`, and a reader
-- adds the later ones itself. Ids of one organisation are committed in the order in which they are drawn, because
-- write_signals holds the organisation until it commits: a reader who sees an id sees all lower ones. So no signal appears
-- below the watermark afterwards, whatever its time. A reader takes the watermark, the counts and the later signals from
-- one snapshot, and its sum equals the rows on every replica; and recording a signal costs nothing more.
create table signal_watermarks (
  prompt_id bigint primary key,
  organisation_id bigint not null,
  counted_to bigint not null
);

-- The signals of a prompt whose time is within so many minutes from `start`: 15, 60 or 1440. Most zones begin their days
-- at a full hour UTC, and all others of today at a quarter.
create table signal_counts (
  prompt_id bigint not null,
  organisation_id bigint not null,
  minutes integer not null check (minutes in (15, 60, 1440)),
  start timestamptz(3) not null,
  positive bigint not null check (positive >= 0),
  negative bigint not null check (negative >= 0),
  primary key (prompt_id, minutes, start)
);

-- The same of the signals that name a commit, apart for each, and so in a table of their own: a caller who names a new
-- commit with every signal makes no other count slower. The key begins with the commit, so that those of known commits
-- are found among any number of others; and without the counts of 60 minutes, a new commit is two rows.
create table signal_commit_counts (
  prompt_id bigint not null,
  organisation_id bigint not null,
  commit_sha text collate "C" not null check (commit_sha <> ''),
  minutes integer not null check (minutes in (15, 1440)),
  start timestamptz(3) not null,
  positive bigint not null check (positive >= 0),
  negative bigint not null check (negative >= 0),
  primary key (prompt_id, commit_sha, minutes, start)
);

-- What an erasure looks for: the idempotency key that a signal was recorded with.
create index on idempotency_keys (prompt_id, signal_id);

-- The commit that a signal names in its metadata: any text that a history entry may have for its commit; null for none.
create function commit_of_signal(metadata jsonb)
returns text
language sql
immutable
as $$
  select case
    when jsonb_typeof(metadata -> 'commit_sha') = 'string' and length(metadata ->> 'commit_sha') between 1 and 100
    then metadata ->> 'commit_sha'
  end
$$;

-- The start of the 15, 60 or 1440 minutes that an instant is in, by UTC.
create function floor_minutes(instant timestamptz, minutes integer)
returns timestamptz
language sql
immutable
as $$
  select date_bin(make_interval(mins => minutes), instant, timestamptz '2000-01-01 00:00:00Z')
$$;

-- Adds signals to the counts of a prompt, or with -1 takes them away. A signal that names no commit has null for it. The caller
-- holds the watermark of the prompt.
create function add_to_signal_counts(
  given_prompt_id bigint, given_organisation_id bigint,
  created_ats timestamptz[], signal_values text[], commits text[], factor integer
)
returns void
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  insert into signal_counts as c (prompt_id, organisation_id, minutes, start, positive, negative)
  select
    given_prompt_id, given_organisation_id, w.minutes, floor_minutes(s.created_at, w.minutes),
    count(*) filter (where s.value = 'positive'), count(*) filter (where s.value = 'negative')
  from unnest(created_ats, signal_values) s (created_at, value)
  cross join (values (15), (60), (1440)) w (minutes)
  group by 3, 4
  on conflict (prompt_id, minutes, start) do update
  set positive = c.positive + factor * excluded.positive, negative = c.negative + factor * excluded.negative;

  insert into signal_commit_counts as c (prompt_id, organisation_id, commit_sha, minutes, start, positive, negative)
  select
    given_prompt_id, given_organisation_id, s.commit_sha, w.minutes, floor_minutes(s.created_at, w.minutes),
    count(*) filter (where s.value = 'positive'), count(*) filter (where s.value = 'negative')
  from unnest(created_ats, signal_values, commits) s (created_at, value, commit_sha)
  cross join (values (15), (1440)) w (minutes)
  where s.commit_sha is not null
  group by 3, 4, 5
  on conflict (prompt_id, commit_sha, minutes, start) do update
  set positive = c.positive + factor * excluded.positive, negative = c.negative + factor * excluded.negative;
end
$$;

-- Locks the watermark of a prompt until the transaction ends, and makes one for a prompt that has none; null for a prompt
-- without signals. An erasure needs a watermark too: without one, a first count could take what is being erased.
create function lock_watermark(given_prompt_id bigint)
returns signal_watermarks
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  watermark signal_watermarks;
begin
  select w.* into watermark from signal_watermarks w where w.prompt_id = given_prompt_id for update;
  if not found then
    insert into signal_watermarks (prompt_id, organisation_id, counted_to)
    select s.prompt_id, s.organisation_id, 0
    from signals s
    where s.prompt_id = given_prompt_id
    order by s.prompt_id, s.id
    limit 1
    on conflict do nothing;
    select w.* into watermark from signal_watermarks w where w.prompt_id = given_prompt_id for update;
  end if;
  return watermark;
end
$$;

-- Counts the next signals of a prompt, at most so many, and returns how many there were. It takes the signals by their
-- ids, so that a plan made while there were few of them stays right.
create function count_signals(given_prompt_id bigint, max_rows integer)
returns integer
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  watermark signal_watermarks;
  taken record;
begin
  watermark := lock_watermark(given_prompt_id);
  if watermark is null then
    return 0;
  end if;

  select
    count(*) as number, max(s.id) as last_id, array_agg(s.created_at) as created_ats,
    array_agg(s.value::text) as signal_values, array_agg(commit_of_signal(s.metadata)) as commits
  into taken
  from (
    select s.id, s.value, s.created_at, s.metadata
    from signals s
    where s.prompt_id = given_prompt_id and s.id > watermark.counted_to
    order by s.prompt_id, s.id
    limit max_rows
  ) s;

  if taken.number > 0 then
    perform add_to_signal_counts(
      given_prompt_id, watermark.organisation_id, taken.created_ats, taken.signal_values, taken.commits, 1
    );
    update signal_watermarks w set counted_to = taken.last_id where w.prompt_id = given_prompt_id;
  end if;
  return taken.number;
end
$$;

-- Whether more than so many signals of a prompt are not counted yet.
create function has_uncounted_signals(given_prompt_id bigint, more_than integer)
returns boolean
language plpgsql
stable
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
begin
  return exists (
    select from signals s
    where s.prompt_id = given_prompt_id
      and s.id > coalesce((select w.counted_to from signal_watermarks w where w.prompt_id = given_prompt_id), 0)
    order by s.prompt_id, s.id
    offset more_than
  );
end
$$;

-- Erases those of a prompt's signals that have these ids, from the counts too, and returns how many there were. What the
-- organisation has used of its month stays. An idempotency key goes with its signal: it must not replay what is gone.
create function erase_signals(given_prompt_id bigint, signal_ids bigint[])
returns integer
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  watermark signal_watermarks;
  erased record;
begin
  watermark := lock_watermark(given_prompt_id);

  delete from idempotency_keys k
  using unnest(signal_ids) e (id)
  where k.prompt_id = given_prompt_id and k.signal_id = e.id;

  with deleted as (
    delete from signals s
    using unnest(signal_ids) e (id)
    where s.prompt_id = given_prompt_id and s.id = e.id
    returning s.value, s.created_at, s.metadata, s.id <= watermark.counted_to as is_counted
  )
  select
    count(*) as number, array_agg(d.created_at) filter (where d.is_counted) as created_ats,
    array_agg(d.value::text) filter (where d.is_counted) as signal_values,
    array_agg(commit_of_signal(d.metadata)) filter (where d.is_counted) as commits
  into erased
  from deleted d;

  if erased.created_ats is not null then
    perform add_to_signal_counts(
      given_prompt_id, watermark.organisation_id, erased.created_ats, erased.signal_values, erased.commits, -1
    );

    delete from signal_counts c
    using (
      select distinct w.minutes, floor_minutes(e.created_at, w.minutes) as start
      from unnest(erased.created_ats) e (created_at)
      cross join (values (15), (60), (1440)) w (minutes)
    ) touched
    where c.prompt_id = given_prompt_id and c.minutes = touched.minutes and c.start = touched.start
      and c.positive = 0 and c.negative = 0;

    delete from signal_commit_counts c
    using (
      select distinct e.commit_sha, w.minutes, floor_minutes(e.created_at, w.minutes) as start
      from unnest(erased.created_ats, erased.commits) e (created_at, commit_sha)
      cross join (values (15), (1440)) w (minutes)
      where e.commit_sha is not null
    ) touched
    where c.prompt_id = given_prompt_id and c.commit_sha = touched.commit_sha and c.minutes = touched.minutes
      and c.start = touched.start and c.positive = 0 and c.negative = 0;
  end if;
  return erased.number;
end
$$;

-- The part of a span that consists of whole units of so many minutes. Without any it is empty, and ends with the span.
-- `offset 0` has each bound computed once: the planner would put the expressions of one call into those of the next, and
-- a year of days would take 200 ms instead of 9.
create function whole_units(span_low timestamptz, span_high timestamptz, minutes integer)
returns table (low timestamptz, high timestamptz)
language sql
immutable
as $$
  select u.low, greatest(floor_minutes(span_high, minutes), u.low)
  from (
    select least(floor_minutes(span_low + make_interval(mins => minutes) - interval '1 microsecond', minutes), span_high)
    offset 0
  ) u (low)
  offset 0
$$;

-- Splits each span between two of the ascending bounds into parts that are read from signals (0 minutes) or from counts
-- of 15, 60 or 1440 minutes, the largest that fit: what a span has at its edges is little, whatever its length.
create function parts_of_spans(bounds timestamptz[])
returns table (number integer, minutes integer, low timestamptz, high timestamptz)
language sql
immutable
as $$
  select span.number, part.minutes, part.low, part.high
  from generate_series(1, cardinality(bounds) - 1) span (number)
  cross join lateral (values (bounds[span.number], bounds[span.number + 1])) s (low, high)
  cross join lateral whole_units(s.low, s.high, 15) q
  cross join lateral whole_units(q.low, q.high, 60) h
  cross join lateral whole_units(h.low, h.high, 1440) d
  cross join lateral (
    values
      (0, s.low, q.low), (15, q.low, h.low), (60, h.low, d.low), (1440, d.low, d.high),
      (60, d.high, h.high), (15, h.high, q.high), (0, q.high, s.high)
  ) part (minutes, low, high)
  where part.low < part.high
$$;

-- How many signals of a prompt are of a time between each two of the ascending bounds, the first of them included. A span
-- without signals has no row; spans are numbered from 1.
create function count_signals_between(given_prompt_id bigint, bounds timestamptz[])
returns table (number integer, positive bigint, negative bigint)
language plpgsql
stable
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
declare
  watermark bigint := coalesce((select w.counted_to from signal_watermarks w where w.prompt_id = given_prompt_id), 0);
begin
  return query
  with parts as materialized (select * from parts_of_spans(bounds))
  select found.number, sum(found.positive)::bigint, sum(found.negative)::bigint
  from (
    select p.number, c.positive, c.negative
    from parts p
    cross join lateral (
      select sum(c.positive) as positive, sum(c.negative) as negative
      from signal_counts c
      where c.prompt_id = given_prompt_id and c.minutes = p.minutes and c.start >= p.low and c.start < p.high
    ) c
    where p.minutes > 0 and c.positive is not null
    union all
    select p.number, s.positive, s.negative
    from parts p
    cross join lateral (
      select
        count(*) filter (where s.value = 'positive') as positive,
        count(*) filter (where s.value = 'negative') as negative
      from (
        select s.id, s.value
        from signals s
        where s.prompt_id = given_prompt_id and s.created_at >= p.low and s.created_at < p.high
        order by s.prompt_id, s.created_at, s.id
      ) s
      where s.id <= watermark
    ) s
    where p.minutes = 0 and s.positive + s.negative > 0
    union all
    select
      width_bucket(s.created_at, bounds), count(*) filter (where s.value = 'positive'),
      count(*) filter (where s.value = 'negative')
    from signals s
    where s.prompt_id = given_prompt_id and s.id > watermark
      and width_bucket(s.created_at, bounds) between 1 and cardinality(bounds) - 1
    group by 1
  ) found
  group by found.number;
end
$$;

-- Counts the newest signals before a position and from a time on, at most so many, by the text that their metadata has
-- under a key. A text may be long, so that each is known by its hash, its begin and the id of a signal that has it; the
-- signals that have no such key have null for the three. `last_time` and `last_id` are where it stopped.
create function count_by_metadata(
  given_prompt_id bigint, before_time timestamptz, before_id bigint, since timestamptz, key text, max_signals integer,
  -- Arrays of hash, begin, id, positive and negative.
  out counts json, out looked_at integer, out last_time timestamptz, out last_id bigint
)
language plpgsql
stable
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
begin
  with newest as materialized (
    select s.id, s.created_at, s.value, text_of_metadata(s.metadata, key) as text
    from signals s
    where s.prompt_id = given_prompt_id and (s.created_at, s.id) < (before_time, before_id) and s.created_at >= since
    order by s.prompt_id desc, s.created_at desc, s.id desc
    limit max_signals
  ), counted as (
    select
      md5(n.text) as hash, left(n.text, 100) as begin, max(n.id) filter (where n.text is not null) as id,
      count(*) filter (where n.value = 'positive') as positive,
      count(*) filter (where n.value = 'negative') as negative
    from newest n
    group by 1, 2
  )
  select
    (
      select coalesce(json_agg(json_build_array(c.hash, c.begin, c.id, c.positive, c.negative)), '[]')
      from counted c
    ),
    count(*), (array_agg(n.created_at))[count(*)], (array_agg(n.id))[count(*)]
  into counts, looked_at, last_time, last_id
  from newest n;
end
$$;

-- How many signals there are of a month, as they are there now: of each of these prompts, without a day; and of each day,
-- UTC, over all of them, without a prompt.
create function count_month(prompt_ids bigint[], given_month date)
returns table (prompt_id bigint, day date, total bigint)
language plpgsql
stable
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
set enable_incremental_sort = off
set jit = off
as $$
declare
  low timestamptz := given_month::timestamp at time zone 'UTC';
  high timestamptz := (given_month + interval '1 month') at time zone 'UTC';
begin
  return query
  select p.id, (c.start at time zone 'UTC')::date, sum(c.total)::bigint
  from unnest(prompt_ids) p (id)
  left join lateral (select w.counted_to from signal_watermarks w where w.prompt_id = p.id limit 1) w on true
  cross join lateral (
    select c.start, c.positive + c.negative as total
    from signal_counts c
    where c.prompt_id = p.id and c.minutes = 1440 and c.start >= low and c.start < high
    union all
    select floor_minutes(s.created_at, 1440), 1
    from (
      select s.created_at
      from signals s
      where s.prompt_id = p.id and s.id > coalesce(w.counted_to, 0)
      order by s.prompt_id, s.id
    ) s
    where s.created_at >= low and s.created_at < high
  ) c
  group by grouping sets ((1), (2));
end
$$;
