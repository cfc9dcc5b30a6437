import type { Sql } from '../db/client.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { WindowCount } from './attribute.ts'
import type { SplitBounds } from './bounds.ts'

/**
 * Counts the signals of a prompt by the span between two bounds and by day, UTC. A day that has a bound in it is read by
 * quarters of an hour, and a quarter that has one from the signals.
 */
export const selectDayCounts = (
  sql: Sql,
  { id, organisationId }: OwnedPrompt,
  split: SplitBounds,
): Promise<WindowCount[]> =>
  sql<WindowCount>`
    with given as materialized (
      select
        ${split.bounds}::text[]::timestamptz[] as bounds,
        ${split.days}::text[]::timestamptz[] as split_days,
        ${split.quarters}::text[]::timestamptz[] as split_quarters,
        (select coalesce(max(last_rolled_up_id), 0) from signal_watermarks where organisation_id = ${organisationId} and prompt_id = ${id}) as watermark
    ), counts as (
      select width_bucket(d.start, g.bounds) as number, d.start as day, d.positive, d.negative
      from given g
      join signal_counts d
        on d.organisation_id = ${organisationId} and d.prompt_id = ${id} and d.minutes = 1440 and d.start >= g.bounds[1] and d.start <> all(g.split_days)
      union all
      select q.number, one.day, q.positive, q.negative
      from given g
      cross join lateral unnest(g.split_days) one (day)
      cross join lateral (
        select width_bucket(q.start, g.bounds) as number, sum(q.positive) as positive, sum(q.negative) as negative
        from signal_counts q
        where q.organisation_id = ${organisationId} and q.prompt_id = ${id} and q.minutes = 15 and q.start >= one.day
          and q.start < one.day + interval '24 hours' and q.start <> all(g.split_quarters)
        group by 1
      ) q
      union all
      select edge.number, floor_minutes(one.quarter, 1440), edge.positive, edge.negative
      from given g
      cross join lateral unnest(g.split_quarters) one (quarter)
      cross join lateral (
        select
          width_bucket(s.created_at, g.bounds) as number,
          count(*) filter (where s.value = 'positive') as positive,
          count(*) filter (where s.value = 'negative') as negative
        from signals s
        where s.organisation_id = ${organisationId} and s.prompt_id = ${id} and s.id <= g.watermark
          and s.created_at >= one.quarter and s.created_at < one.quarter + interval '15 minutes'
        group by 1
      ) edge
      union all
      select
        width_bucket(s.created_at, g.bounds), floor_minutes(s.created_at, 1440), (s.value = 'positive')::integer,
        (s.value = 'negative')::integer
      from given g
      join signals s on s.organisation_id = ${organisationId} and s.prompt_id = ${id} and s.id between g.watermark + 1 and 9223372036854775807
    )
    select
      c.number, to_char(c.day at time zone 'UTC', 'YYYY-MM-DD') as day, sum(c.positive)::bigint as positive,
      sum(c.negative)::bigint as negative
    from counts c
    where c.number between 1 and ${split.bounds.length - 1}
    group by c.number, c.day`
