import type { Sql } from '../db/client.ts'
import type { OwnedPrompt } from '../prompts/find.ts'

/** The signals of a prompt in a span of time. Spans are numbered from 1, in the order of their bounds. */
export type SpanCount = { promptId: number; number: number; positive: number; negative: number }

/** Counts the signals of each prompt between each two of the ascending bounds. Leaves out empty spans. */
export const selectSpanCounts = (
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  bounds: Date[],
): Promise<SpanCount[]> =>
  sql<SpanCount>`
    select p.id as "promptId", c.number, c.positive, c.negative
    from unnest(${promptIds.map(String)}::text[]::bigint[]) p (id)
    cross join lateral count_signals_between(
      ${organisationId}, p.id, ${bounds.map((bound) => bound.toISOString())}::text[]::timestamptz[]
    ) c`

/** The signals with one metadata value. A null value stands for those without any, or for all other values together. */
export type MetadataCount = { value: string | null; values: number; positive: number; negative: number; read: number }

/**
 * Counts the newest `limit` signals of a range by their metadata under a key: the `most` largest values, largest first, then
 * all others, then those without one. Of a list, each of the first elements counts: one may have thousands. Values may be
 * long, so they are grouped by hash. `read` is how many signals there were.
 */
export const countByMetadata = (
  sql: Sql,
  { id, organisationId }: OwnedPrompt,
  { since, until }: { since: Date; until: Date },
  key: string,
  limit: number,
  most: number,
) =>
  sql<MetadataCount>`
    with newest as materialized (
      select s.value, jsonb_path_query_array(s.metadata -> ${key}::text, '$[0 to 19]') as found
      from signals s
      where s.organisation_id = ${organisationId} and s.prompt_id = ${id}
        and s.created_at >= ${since} and s.created_at < ${until}
      order by s.created_at desc, s.id desc
      limit ${limit}
    ), split as materialized (
      select n.value, e.text
      from newest n
      left join lateral (
        select distinct coalesce(e.element #>> '{}', e.element::text) as text from jsonb_array_elements(n.found) e (element)
      ) e on true
    ), counted as (
      select
        min(n.text) as text, count(*) filter (where n.value = 'positive') as positive,
        count(*) filter (where n.value = 'negative') as negative,
        case
          when min(n.text) is null then ${most + 2}::bigint
          else least(
            row_number() over (order by min(n.text) is null, count(*) desc, min(n.text) collate "C"), ${most + 1}::bigint
          )
        end as place
      from split n
      group by md5(n.text)
    )
    select
      case when c.place <= ${most} then min(c.text) end as value, count(c.text) as "values",
      sum(c.positive)::bigint as positive, sum(c.negative)::bigint as negative, (select count(*) from newest) as read
    from (
      select * from counted
      union all
      select null, 0, 0, place from generate_series(${most + 1}::bigint, ${most + 2}::bigint) place
    ) c
    group by c.place
    order by c.place`

/** Rolls up the next signals of a prompt, at most `limit`. Returns the number of signals rolled up. */
export async function rollUpSignals(sql: Sql, { id, organisationId }: OwnedPrompt, limit: number): Promise<number> {
  const [row] = await sql<{ number: number }>`select roll_up_signals(${organisationId}, ${id}, ${limit}) as number`
  return row?.number ?? 0
}

/** The prompts of an organisation with more than `threshold` signals that are not rolled up yet. */
export async function selectPromptsBehind(
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  threshold: number,
): Promise<number[]> {
  const rows = await sql<{ id: number }>`
    select p.id
    from unnest(${promptIds.map(String)}::text[]::bigint[]) p (id)
    where exists (
      select from signals s
      where s.organisation_id = ${organisationId} and s.prompt_id = p.id
        and s.id > (
          select coalesce(max(w.last_rolled_up_id), 0) from signal_watermarks w
          where w.organisation_id = ${organisationId} and w.prompt_id = p.id
        )
      order by s.id
      offset ${threshold}
    )`
  return rows.map(({ id }) => id)
}

/** The signals of one prompt on all days, or of all prompts on one day. */
type MonthCount = { promptId: number; date: null; total: number } | { promptId: null; date: string; total: number }

/**
 * Counts the signals of these prompts in a month, by prompt and by day (UTC). Returns only counts above zero. The month of a
 * signal after the watermark is compared as a string: a range of times would tempt the planner to read the whole month.
 */
export const selectMonthCounts = (
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  month: string,
): Promise<MonthCount[]> =>
  sql<MonthCount>`
    select p.id as "promptId", c.date, sum(c.total)::bigint as total
    from unnest(${promptIds.map(String)}::text[]::bigint[]) p (id)
    cross join lateral (
      select to_char(c.start at time zone 'UTC', 'YYYY-MM-DD') as date, c.positive + c.negative as total
      from signal_counts c
      where c.organisation_id = ${organisationId} and c.prompt_id = p.id and c.minutes = 1440
        and c.start >= ${`${month}-01`}::text::date::timestamp at time zone 'UTC'
        and c.start < (${`${month}-01`}::text::date + interval '1 month') at time zone 'UTC'
      union all
      select t.date, 1
      from (
        select to_char(s.created_at at time zone 'UTC', 'YYYY-MM-DD') as date
        from signals s
        where s.organisation_id = ${organisationId} and s.prompt_id = p.id
          and s.id between (
            select coalesce(max(w.last_rolled_up_id), 0) + 1 from signal_watermarks w
            where w.organisation_id = ${organisationId} and w.prompt_id = p.id
          ) and 9223372036854775807
      ) t
      where left(t.date, 7) = ${month}
    ) c
    group by grouping sets ((p.id), (c.date))`
