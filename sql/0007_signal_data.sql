-- One step of an export: the lines of the next signals of a prompt after a position, in order of time. Looks at max_rows
-- signals at most, and stops after max_bytes of lines, so that neither rare values nor large metadata make a step long.
--
-- Lines are put together here, because to send, parse and write each signal by itself takes several times as long.
create function export_signals(
  given_prompt_id bigint, public_id text, after_time timestamptz, after_id bigint, until timestamptz, given_value text,
  is_csv boolean, max_rows integer, max_bytes integer,
  -- The lines, how many there are, and how many signals were looked at for them.
  out lines text, out exported integer, out looked_at integer,
  -- The position of the last signal that was looked at.
  out last_time timestamptz, out last_id bigint
)
language plpgsql
stable
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
-- Compiling the statement would take longer than running it.
set jit = off
as $$
begin
  select
    string_agg(l.line, ''), count(l.line), count(*), max(l.created_at), (array_agg(l.id))[count(*)]
  into lines, exported, looked_at, last_time, last_id
  from (
    select
      s.id, s.created_at, s.line,
      sum(octet_length(s.line)) over (order by s.created_at, s.id rows between unbounded preceding and 1 preceding) as bytes_before
    from (
      select
        s.created_at, s.id,
        case
          when s.value <> given_value then null
          -- No cell begins with what a spreadsheet takes for a formula: metadata is an object, and so begins with a brace.
          when is_csv then
            s.id || ',' || public_id || ',' || s.value || ',' || t.text || ','
            || coalesce('"' || replace(s.metadata::text, '"', '""') || '"', '') || e'\r\n'
          else
            '{"id":' || s.id || ',"prompt":"' || public_id || '","value":"' || s.value || '","metadata":'
            || coalesce(s.metadata::text, 'null') || ',"created_at":"' || t.text || e'"}\n'
        end as line
      from signals s
      cross join lateral (
        select to_char(s.created_at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as text
      ) t
      where s.prompt_id = given_prompt_id
        and (s.created_at, s.id) > (after_time, after_id)
        and s.created_at < until
      order by s.created_at, s.id
      limit max_rows
    ) s
  ) l
  where coalesce(l.bytes_before, 0) < max_bytes;
end
$$;

-- Erases at most max_rows of a prompt's signals from before a time, the oldest first: how many it found, and how many of
-- them nobody else was erasing at the same time.
create function erase_signals_before(
  given_prompt_id bigint, before timestamptz, max_rows integer, out found_rows integer, out erased_rows integer
)
language plpgsql
set plan_cache_mode = 'force_generic_plan'
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set enable_incremental_sort = off
as $$
declare
  ids bigint[];
begin
  ids := array(
    select s.id
    from signals s
    where s.prompt_id = given_prompt_id and s.created_at < before
    order by s.created_at, s.id
    limit max_rows
  );
  found_rows := cardinality(ids);
  erased_rows := case when found_rows = 0 then 0 else erase_signals(given_prompt_id, ids) end;
end
$$;
