import type { Sql } from '../db/client.ts'
import type { EntryRow } from '../history/schema.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { PromptFilters } from '../prompts/schema.ts'
import type { ChangeWindow } from './attribute.ts'
import type { ImpactQuery } from './schema.ts'
import type { Sort } from './schema_overview.ts'

/** An entry that put another commit live on the prompt's live branch (the view history_changes), with its window. */
export type Change = EntryRow & ChangeWindow & { prompt_id: number }

type PageToSelect = Pick<ImpactQuery, 'action' | 'branch' | 'since' | 'until' | 'limit'> & { offset: number }

/** The ids of a page of a prompt's changes, newest first, and how many changes match. */
export async function selectChangePage(sql: Sql, { id, organisationId }: OwnedPrompt, page: PageToSelect) {
  const { action, branch, since, until, limit, offset } = page
  const [row] = await sql<{ totalCount: number; ids: number[] }>`
    with matching as materialized (
      select h.id, h.created_at
      from history_changes h
      where h.organisation_id = ${organisationId} and h.prompt_id = ${id}
        and (${action}::text[] is null or h.action = any(${action}::text[]))
        and (${branch}::text is null or h.branch_name = ${branch})
        and h.created_at >= coalesce(${since}, '-infinity'::timestamptz)
        and h.created_at <= coalesce(${until}, 'infinity'::timestamptz)
    )
    select
      (select count(*) from matching) as "totalCount",
      to_json(array(
        select id from matching
        order by created_at desc, id desc
        offset ${offset}::bigint limit ${limit}
      )) as ids`
  return row as NonNullable<typeof row>
}

/** Selects the live change of each prompt, and its newest changes since `since`, at most `limit` per prompt in all. */
export const selectNewestChanges = (
  sql: Sql,
  organisationId: number,
  promptIds: number[],
  { since, limit }: { since: Date | null; limit: number } = { since: null, limit: 1 },
) =>
  sql<{ prompt_id: number; id: number; created_at: Date }>`
    select p.id as prompt_id, h.id, h.created_at
    from unnest(${promptIds.map(String)}::text[]::bigint[]) p (id)
    cross join lateral (
      select h.id, h.created_at, row_number() over (order by h.created_at desc, h.id desc) as place
      from history_changes h
      where h.organisation_id = ${organisationId} and h.prompt_id = p.id
      order by h.created_at desc, h.id desc
      limit ${limit}
    ) h
    where h.place = 1 or h.created_at >= ${since}`

/** Selects the given entries that are changes, and the change before each. They may be of different prompts. */
export const selectChanges = (sql: Sql, organisationId: number, ids: number[]): Promise<Change[]> =>
  sql<Change>`
    with given as (
      select
        h.id,
        (
          select before.id
          from history_changes before
          where before.organisation_id = h.organisation_id and before.prompt_id = h.prompt_id
            and (before.created_at, before.id) < (h.created_at, h.id)
          order by before.created_at desc, before.id desc
          limit 1
        ) as before_id
      from history_changes h
      where h.id = any(${ids.map(String)}::text[]::bigint[]) and h.organisation_id = ${organisationId}
    )
    select
      h.*, w.before_id,
      (
        select later.created_at
        from history_changes later
        where later.organisation_id = h.organisation_id and later.prompt_id = h.prompt_id
          and (later.created_at, later.id) > (h.created_at, h.id)
        order by later.created_at, later.id
        limit 1
      ) as live_until,
      case when exists (
        select from history_changes earlier
        where earlier.organisation_id = h.organisation_id and earlier.prompt_id = h.prompt_id
          and earlier.commit_key = h.commit_key and (earlier.created_at, earlier.id) < (h.created_at, h.id)
      ) then h.created_at end as named_from,
      (
        select later.created_at
        from history_changes later
        where later.organisation_id = h.organisation_id and later.prompt_id = h.prompt_id
          and later.commit_key = h.commit_key and (later.created_at, later.id) > (h.created_at, h.id)
        order by later.created_at, later.id
        limit 1
      ) as named_until
    from (
      select id, before_id from given
      union all
      select before_id, null from given where before_id is not null and before_id not in (select id from given)
    ) w
    join history_changes h on h.organisation_id = ${organisationId} and h.id = w.id`

/** The commits of all changes of these prompts, in lower case. */
export const selectChangeCommits = (sql: Sql, organisationId: number, promptIds: number[]) =>
  sql<{ prompt_id: number; commits: string[] }>`
    select prompt_id, json_agg(distinct commit_key) as commits
    from history_changes
    where organisation_id = ${organisationId} and prompt_id = any(${promptIds.map(String)}::text[]::bigint[])
    group by prompt_id`

/** Prompts of an organisation in an order. Signals count from one midnight (UTC) until another. */
export type SortedList = { organisationId: number; filters: PromptFilters; sort: Sort; from: Date; until: Date }

/** The place of a prompt: its sort key, lowest first, and among equals the newest prompt first. */
type Place = { id: number; key: string }

/**
 * Selects the first `limit` prompts after a place, and how many prompts match. Sorts nothing if more than `most` match. A
 * `filter` compares the times of the signals after the watermark: a condition in `where` would tempt the planner to read all
 * signals of these days.
 */
export async function selectSortedPrompts(
  sql: Sql,
  { organisationId, filters: { search, archived }, sort, from, until }: SortedList,
  after: Partial<Place> | null,
  limit: number,
  most: number,
): Promise<{ found: number; places: Place[] }> {
  const [number, name] = sort === 'name' ? [0, after?.key ?? ''] : [Number(after?.key), '']
  const rows = await sql<{ found: number; id: number | null; number: number; name: string }>`
    with matching as materialized (
      select p.id, p.name_key
      from prompts p
      where p.organisation_id = ${organisationId}
        and (${archived}::text = 'all' or p.archived::text = ${archived}::text)
        and (
          ${search}::text is null
          or strpos(lower(concat_ws(chr(10), p.name, p.public_id, p.path)), lower(${search}::text)) > 0
        )
      order by p.id
      limit ${most + 1}
    ), valued as materialized (
      select
        p.id, case when ${sort}::text = 'name' then p.name_key else '' end as name,
        coalesce(case
          when ${sort}::text = 'name' then 0
          when ${sort}::text = 'last_change' then (
            select -extract(epoch from max(h.created_at))
            from history_changes h
            where h.organisation_id = ${organisationId} and h.prompt_id = p.id
          )
          else (
            select case
              when ${sort}::text = 'signals' then -sum(c.positive + c.negative)
              else round(sum(c.positive) / nullif(sum(c.positive + c.negative), 0), 6)
            end
            from (
              select c.positive, c.negative
              from signal_counts c
              where c.organisation_id = ${organisationId} and c.prompt_id = p.id and c.minutes = 1440
                and c.start >= ${from} and c.start < ${until}
              union all
              select
                count(*) filter (where s.value = 'positive' and s.created_at >= ${from} and s.created_at < ${until}),
                count(*) filter (where s.value = 'negative' and s.created_at >= ${from} and s.created_at < ${until})
              from signals s
              where s.organisation_id = ${organisationId} and s.prompt_id = p.id
                -- The upper bound excludes nothing. It tells the planner that few signals are above the watermark.
                and s.id between (
                  select coalesce(max(w.last_rolled_up_id), 0) + 1 from signal_watermarks w
                  where w.organisation_id = ${organisationId} and w.prompt_id = p.id
                ) and 9223372036854775807
            ) c
          )
        end, 'infinity')::float8 as number
      from matching p
      where (select count(*) from matching) <= ${most}
    )
    select f.found, v.id, v.number, v.name
    from (select count(*) as found from matching) f
    left join lateral (
      select v.*
      from valued v
      where ${after === null} or (v.number, v.name, -v.id) > (${number}::float8, ${name}::text, -${after?.id ?? 0}::bigint)
      order by v.number, v.name, v.id desc
      limit ${limit}
    ) v on true
    order by v.number, v.name, v.id desc`
  const places = rows.flatMap(({ id, ...key }) =>
    id === null ? [] : { id, key: sort === 'name' ? key.name : String(key.number) },
  )
  return { found: rows[0]?.found ?? 0, places }
}
