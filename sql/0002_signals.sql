-- Constraints of the tables that every signal writes to are domains. Postgres plans the check constraints of a table again
-- with every statement that writes to it, but keeps those of a domain.
create domain signal_value as text check (value in ('positive', 'negative'));
create domain signal_metadata as jsonb check (jsonb_typeof(value) = 'object');
create domain month_start as date check (extract(day from value) = 1);
create domain signal_count as integer check (value >= 0);
-- With a browser key, what the client sent follows the id of the browser key and a tab.
create domain idempotency_key as text collate "C" check (length(value) between 1 and 275);
create domain signal_subject as text collate "C" check (length(value) between 1 and 275);

-- The large tables are vacuumed after a fiftieth of their rows has changed. The default of a fifth is never reached while a
-- purge leaves millions of dead rows.
create table signals (
  -- write_signals draws one number for up to 1,000 signals.
  id bigint generated always as identity (increment by 1000),
  organisation_id bigint not null,
  prompt_id bigint not null,
  value signal_value not null,
  metadata signal_metadata,
  created_at timestamptz(3) not null,
  -- What the signal is about, if the client says so: see find_votes.
  subject signal_subject,
  -- The rollup reads the signals of a prompt that were recorded after a known id.
  primary key (prompt_id, id)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);

-- The order of lists and exports. A signal of a batch may have an earlier time than signals with a lower id. No two entries
-- are equal, so deduplication would only cost time before each page split.
create index on signals (prompt_id, created_at, id) with (deduplicate_items = off);

-- Signals without a subject cost nothing here.
create index on signals (prompt_id, subject) where subject is not null;

-- Statements compare both. Without this, Postgres expects far too few signals of a prompt, and reads all of them to sort them.
create statistics signals_owner (dependencies) on prompt_id, organisation_id from signals;

-- A row is an organisation's month: the number of signals recorded in it. write_signals is the only writer. `block` is
-- `used / 200`, and part of the key so that the row stays cheap to find: every write leaves a dead version, which vacuum
-- cannot remove while a session holds a snapshot. A look-up of the highest block reads at most 200 versions.
create table signal_usage (
  organisation_id bigint not null references organisations,
  month month_start not null,
  used signal_count not null,
  block integer not null default 0,
  primary key (organisation_id, month, block)
) with (fillfactor = 50);

-- A row is a browser key's month: the number of signals recorded with the key and its rotated successors. It is found like
-- a row of signal_usage.
create table key_usage (
  organisation_id bigint not null,
  key_id bigint not null,
  month month_start not null,
  used signal_count not null,
  block integer not null default 0,
  primary key (organisation_id, key_id, month, block),
  foreign key (organisation_id, key_id) references api_keys
) with (fillfactor = 50);

-- A row maps a client's Idempotency-Key to the signal that was recorded with it.
create table idempotency_keys (
  organisation_id bigint not null,
  key idempotency_key not null,
  prompt_id bigint not null,
  signal_id bigint not null,
  created_at timestamptz(3) not null,
  -- Of a signal with a subject, which may have changed since: what was sent, and whether it replaced an earlier one.
  vote_hash bigint,
  is_replacement boolean,
  primary key (organisation_id, key)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02);

create index on idempotency_keys (created_at);

-- The usage and the limit of each organisation's month, by its position in the arrays; and the ctid of its row, which is
-- null before the first signal of the month. The month '-infinity' stands for closed months and has no room.
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
    select o.monthly_limit
    from organisations o
    where o.id = m.organisation_id and m.month > '-infinity'
    limit 1
  ) o on true;
$$;

-- For each subject of a prompt (organisation_id, prompt_id, subject, at), the signal that another one at that time replaces:
-- within 90 days there is one. An import may be earlier than the signal; one between two replaces the earlier one again.
create function find_votes(votes jsonb)
returns table (number bigint, signal_id bigint, created_at timestamptz)
language sql
stable
as $$
  select g.number, s.id, s.created_at
  from rows from (
    jsonb_to_recordset(votes) as (organisation_id bigint, prompt_id bigint, subject text, at timestamptz)
  ) with ordinality g (organisation_id, prompt_id, subject, at, number)
  left join lateral (
    select s.id, s.created_at
    from signals s
    where s.organisation_id = g.organisation_id and s.prompt_id = g.prompt_id and s.subject = g.subject
      -- Neither this nor the order names a column as an index has it: Postgres must search by the subject.
      and abs(extract(epoch from s.created_at - g.at)) < 90 * 86400
    order by s.created_at > g.at, -s.id
    limit 1
  ) s on true;
$$;

-- What tells a signal with a subject from another one that is sent with the same idempotency key. Null without a subject.
-- Postgres' hash of metadata is the same for [[1], 2] and [[1, 2]]. The text, without what 1, 1.0 and 1.00 differ by, tells
-- them apart.
create function hash_of_vote(subject text, is_positive boolean, metadata jsonb)
returns bigint
language sql
immutable
as $$
  select case when subject is not null
    then hash_record_extended((subject, is_positive, metadata, translate(metadata::text, '.0', '')), 0)
  end
$$;

-- Records signals and counts them, in the order given and as far as the limits allow, in one transaction. Returns arrays
-- by signal and by month, because the driver reads them faster than one row for each signal.
--
-- Locks each organisation until the transaction ends. This makes the limit exact, commits the ids of an organisation in
-- the order in which they are drawn, and lets a call see the idempotency keys of the calls before it. A call that
-- commits early does not hold the locks while the disk or a synchronous standby confirms the commit.
create function write_signals(
  -- The months that the signals count towards: each organisation's month once, in ascending order of the organisations,
  -- so that two calls never deadlock; and how many of the signals count towards each.
  organisation_ids bigint[],
  months date[],
  signal_counts integer[],
  -- The prompts that the signals are of, each once, with the organisations and the public ids that they must have. After a
  -- failover that lost changes, another organisation's prompt may have the id that a replica remembers.
  prompt_ids bigint[],
  prompt_organisation_ids bigint[],
  prompt_public_ids text[],
  -- For each signal, the position of its month and of its prompt in the arrays above.
  month_numbers integer[],
  prompt_numbers integer[],
  are_positive boolean[],
  -- A JSON array of objects and nulls; null when no signal has metadata.
  metadata_list jsonb,
  -- In milliseconds since 1970, which Postgres parses faster than timestamps.
  created_ats bigint[],
  -- The Idempotency-Key of each signal or null, no key twice for one organisation; null when no signal has one.
  idempotency_key_list text[],
  -- When the idempotency keys were sent; null when each was sent at the time of its signal.
  keys_sent_at timestamptz,
  -- The months that browser keys are limited by: each key's month once; and for each signal, the position of its key's
  -- month and the limit of its key, or null. All five are null when no signal came with a browser key.
  browser_key_organisation_ids bigint[],
  browser_key_ids bigint[],
  browser_key_months date[],
  browser_key_numbers integer[],
  browser_key_limits integer[],
  -- The subjects that signals have, each of a prompt once, as find_votes takes them; and for each signal, the position of its
  -- subject or null. Both are null when no signal has a subject.
  votes jsonb,
  vote_numbers integer[],
  -- Returned in the result.
  write_number bigint
)
returns json
language plpgsql
as $$
declare
  is_set boolean;
  -- The id of the first signal, if it is recorded; the others follow in their order.
  first_id bigint;
  -- For each signal, if it was not recorded: refused, replayed (recorded before with the same idempotency key) or
  -- replayed_replacement, conflict (that signal was another one), replaced (instead, another one with its subject was changed)
  -- or missing (the organisation has no such prompt). Null as a whole when all were recorded.
  outcomes text[];
  -- For each signal; null as a whole when all are recorded. Reading outcomes[n] would scan all strings before it.
  are_recorded boolean[];
  -- For each signal whose idempotency key was used before, or whose subject is known.
  earlier_ids bigint[];
  earlier_times bigint[];
  are_same boolean[];
  are_replacements boolean[];
  -- For each subject.
  voted_ids bigint[];
  voted_times bigint[];
  -- For each month.
  used_before integer[];
  month_limits integer[];
  month_used integer[];
  month_rows tid[];
  -- For each month of a browser key.
  browser_key_used_before integer[];
  browser_key_used integer[];
  browser_key_blocks integer[];
  -- The positions of the prompts that do not exist; null when all do.
  missing_prompts integer[];
  -- Whether all signals are recorded. No signal is then decided on its own.
  is_plain boolean;
  -- For the signal at hand.
  month_number integer;
  browser_key_number integer;
begin
  -- Every statement below must see what was committed before it got its lock.
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'write_signals needs the isolation level read committed';
  end if;
  -- The sequence advances by 1,000: more signals would get the ids of the next write.
  if cardinality(prompt_numbers) > 1000 then
    raise exception 'write_signals takes at most 1000 signals';
  end if;

  -- The caller retries an organisation that another transaction has locked without delaying the others. An assignment is
  -- cheaper than a query.
  is_set := set_config('lock_timeout', '200ms', true) is not null;
  -- 5167 is the class of the advisory locks of organisations.
  for number in 1 .. cardinality(organisation_ids) loop
    is_set := pg_advisory_xact_lock(5167, organisation_ids[number]::integer) is not null;
  end loop;

  first_id := nextval('signals_id_seq');
  select
    array_agg(u.used), array_agg(u.monthly_limit), array_agg(u.row_ctid),
    array_agg(u.used + least(signal_counts[u.number], u.monthly_limit - u.used)),
    bool_and(signal_counts[u.number] <= u.monthly_limit - u.used),
    (
      select array_agg(g.number)
      from unnest(prompt_ids, prompt_organisation_ids, prompt_public_ids) with ordinality g (id, owner, public_id, number)
      -- A join without a limit may read all prompts of all organisations.
      left join lateral (
        select p.public_id from prompts p where p.organisation_id = g.owner and p.id = g.id limit 1
      ) p on true
      where p.public_id is distinct from g.public_id
    )
  into used_before, month_limits, month_rows, month_used, is_plain, missing_prompts
  from (select * from usages_of(organisation_ids, months) order by number) u;
  is_plain := is_plain and idempotency_key_list is null and browser_key_numbers is null
    and vote_numbers is null and missing_prompts is null;

  if browser_key_numbers is not null then
    select array_agg(coalesce(u.used, 0) order by m.number), array_agg(coalesce(u.block, 0) order by m.number)
    into browser_key_used_before, browser_key_blocks
    from unnest(browser_key_organisation_ids, browser_key_ids, browser_key_months) with ordinality m (owner, key_id, month, number)
    left join lateral (
      select u.used, u.block
      from key_usage u
      where u.organisation_id = m.owner and u.key_id = m.key_id and u.month = m.month
      order by u.block desc
      limit 1
    ) u on true;
    browser_key_used := browser_key_used_before;
  end if;

  if idempotency_key_list is not null then
    select
      array_agg(s.id order by g.number), array_agg((extract(epoch from s.created_at) * 1000)::bigint order by g.number),
      array_agg(
        s.prompt_id = prompt_ids[prompt_numbers[g.number]]
          and k.vote_hash is not distinct from hash_of_vote(
            votes -> (vote_numbers[g.number] - 1) ->> 'subject', are_positive[g.number], m.metadata
          )
          and (
            k.vote_hash is not null
            or (s.value = 'positive') = are_positive[g.number] and s.metadata is not distinct from m.metadata
          )
        order by g.number
      ),
      array_agg(k.is_replacement order by g.number)
    into earlier_ids, earlier_times, are_same, are_replacements
    from unnest(idempotency_key_list) with ordinality g (key, number)
    cross join lateral (select nullif(metadata_list -> (g.number::integer - 1), 'null') as metadata) m
    left join lateral (
      select k.organisation_id, k.prompt_id, k.signal_id, k.vote_hash, k.is_replacement
      from idempotency_keys k
      where k.organisation_id = organisation_ids[month_numbers[g.number]] and k.key = g.key
      limit 1
    ) k on true
    left join lateral (
      select s.id, s.prompt_id, s.value, s.metadata, s.created_at
      from signals s
      where s.organisation_id = k.organisation_id and s.prompt_id = k.prompt_id and s.id = k.signal_id
      limit 1
    ) s on true;
  end if;

  if vote_numbers is not null then
    select
      array_agg(v.signal_id order by v.number), array_agg((extract(epoch from v.created_at) * 1000)::bigint order by v.number)
    into voted_ids, voted_times
    from find_votes(votes) v;
    earlier_ids := coalesce(earlier_ids, array_fill(null::bigint, array[cardinality(prompt_numbers)]));
    earlier_times := coalesce(earlier_times, earlier_ids);
  end if;

  if not is_plain then
    month_used := used_before;
    outcomes := array_fill(null::text, array[cardinality(prompt_numbers)]);
    are_recorded := array_fill(false, array[cardinality(prompt_numbers)]);
    for number in 1 .. cardinality(prompt_numbers) loop
      month_number := month_numbers[number];
      browser_key_number := browser_key_numbers[number];
      if prompt_numbers[number] = any (missing_prompts) then
        outcomes[number] := 'missing';
      elsif earlier_ids[number] is not null then
        outcomes[number] := case
          when not are_same[number] then 'conflict'
          when are_replacements[number] then 'replayed_replacement'
          else 'replayed'
        end;
      -- Also when the month is full, but not for a time of a closed month.
      elsif voted_ids[vote_numbers[number]] is not null and months[month_number] > '-infinity' then
        outcomes[number] := 'replaced';
        earlier_ids[number] := voted_ids[vote_numbers[number]];
        earlier_times[number] := voted_times[vote_numbers[number]];
      elsif month_used[month_number] >= month_limits[month_number]
        or browser_key_used[browser_key_number] >= browser_key_limits[number] then
        outcomes[number] := 'refused';
      else
        are_recorded[number] := true;
        month_used[month_number] := month_used[month_number] + 1;
        if browser_key_number is not null then
          browser_key_used[browser_key_number] := browser_key_used[browser_key_number] + 1;
        end if;
        if vote_numbers[number] is not null then
          voted_ids[vote_numbers[number]] := first_id + number - 1;
          voted_times[vote_numbers[number]] := created_ats[number];
        end if;
      end if;
    end loop;
  end if;

  insert into signals (id, organisation_id, prompt_id, value, metadata, created_at, subject)
  overriding system value
  select
    first_id + n - 1, organisation_ids[month_numbers[n]], prompt_ids[prompt_numbers[n]],
    case when are_positive[n] then 'positive' else 'negative' end,
    nullif(metadata_list -> (n - 1), 'null'), to_timestamp(created_ats[n] / 1000::double precision),
    votes -> (vote_numbers[n] - 1) ->> 'subject'
  from generate_series(1, cardinality(prompt_numbers)) n
  where are_recorded is null or are_recorded[n];

  -- Of several with one subject, the last one counts. A prompt may have several numbers.
  if 'replaced' = any (outcomes) then
    perform replace_signals(
      prompt_organisation_ids[last.prompt], prompt_ids[last.prompt], array_agg(earlier_ids[last.number]),
      array_agg(case when are_positive[last.number] then 'positive' else 'negative' end),
      array_agg(nullif(metadata_list -> (last.number - 1), 'null'))
    )
    from (
      select prompt_numbers[max(n)] as prompt, max(n) as number
      from generate_series(1, cardinality(outcomes)) n
      where outcomes[n] = 'replaced'
      group by vote_numbers[n]
    ) last
    group by last.prompt;
  end if;

  -- A ctid stays the same while the organisation is locked.
  update signal_usage u
  set used = month_used[m.number], block = month_used[m.number] / 200
  from unnest(month_rows) with ordinality m (row_ctid, number)
  where u.ctid = m.row_ctid and month_used[m.number] > used_before[m.number];

  if array_position(month_rows, null) is not null then
    insert into signal_usage (organisation_id, month, used, block)
    select organisation_ids[n], months[n], month_used[n], month_used[n] / 200
    from generate_series(1, cardinality(months)) n
    where month_rows[n] is null and month_used[n] > 0;
  end if;

  if browser_key_numbers is not null then
    insert into key_usage as u (organisation_id, key_id, month, block, used)
    select
      browser_key_organisation_ids[n], browser_key_ids[n], browser_key_months[n], browser_key_blocks[n], browser_key_used[n]
    from generate_series(1, cardinality(browser_key_ids)) n
    where browser_key_used[n] > browser_key_used_before[n]
    on conflict (organisation_id, key_id, month, block) do update set used = excluded.used, block = excluded.used / 200;
  end if;

  if idempotency_key_list is not null then
    insert into idempotency_keys (organisation_id, key, prompt_id, signal_id, created_at, vote_hash, is_replacement)
    select
      organisation_ids[month_numbers[n]], idempotency_key_list[n], prompt_ids[prompt_numbers[n]],
      case when are_recorded[n] then first_id + n - 1 else earlier_ids[n] end,
      coalesce(keys_sent_at, to_timestamp(created_ats[n] / 1000::double precision)),
      hash_of_vote(votes -> (vote_numbers[n] - 1) ->> 'subject', are_positive[n], nullif(metadata_list -> (n - 1), 'null')),
      nullif(not are_recorded[n], false)
    from generate_series(1, cardinality(prompt_numbers)) n
    where idempotency_key_list[n] is not null and (are_recorded[n] or vote_numbers[n] is not null and outcomes[n] = 'replaced');
  end if;

  -- A replay or a vote that is the same confirms a signal that another call may have committed early. The message makes this
  -- transaction wait for it.
  if outcomes && '{replayed,replayed_replacement,replaced}' then
    is_set := pg_logical_emit_message(true, 'prompt-signals', '') is not null;
  end if;
  return json_build_object(
    'write', write_number, 'firstId', first_id, 'outcomes', outcomes,
    'earlierIds', earlier_ids, 'earlierTimes', earlier_times, 'usedBefore', used_before, 'monthLimits', month_limits,
    'keyUsedBefore', browser_key_used_before
  );
end
$$;

-- Commits the write without waiting for the disk, which releases its locks. A second transaction then waits for the disk:
-- the log is sequential, so the first one is durable too. The message only gives the second one something to wait for.
create procedure commit_early(inout result json)
language plpgsql
as $$
begin
  perform set_config('synchronous_commit', 'off', true);
  commit;
  perform pg_logical_emit_message(true, 'prompt-signals', '');
end
$$;
