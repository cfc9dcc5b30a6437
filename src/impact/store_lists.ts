import type { Sql } from '../db/client.ts'
import type { Spellings } from '../history/identity.ts'
import type { EntryRow } from '../history/schema.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { PromptFilters } from '../prompts/schema.ts'
import type { Sort } from './schema.ts'
import type { ChangeListQuery } from './schema_changes.ts'

/** Prompts of an organisation in an order. Signals count from one midnight (UTC) until another. */
export type SortedList = {
  organisationId: number
  filters: PromptFilters
  sort: Sort
  /** Whether only prompts that have signals are listed. */
  withSignals: boolean
  from: Date
  until: Date
}

/** The place of a prompt: its sort key, lowest first, and among equals the newest prompt first. */
type Place = { id: number; key: string }

/**
 * Selects the first `limit` prompts after a place, and how many prompts match. Sorts nothing if more than `most` match. A
 * `filter` compares the times of the signals after the watermark: a condition in `where` would tempt the planner to read all
 * signals of these days.
 */
export async function selectSortedPrompts(
  sql: Sql,
  { organisationId, filters: { search, archived }, sort, withSignals, from, until }: SortedList,
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
        coalesce(case ${sort}::text
          when 'name' then 0
          when 'last_change' then (
            select -extract(epoch from max(h.created_at))
            from history_changes h
            where h.organisation_id = ${organisationId} and h.prompt_id = p.id
          )
          when 'signals' then -(c.positive + c.negative)
          else round(c.positive / nullif(c.positive + c.negative, 0), 6)
        end, 'infinity')::float8 as number
      from matching p
      cross join lateral (
        select sum(c.positive) as positive, sum(c.negative) as negative
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
        where ${withSignals || sort === 'signals' || sort === 'rate'}
      ) c
      where (select count(*) from matching) <= ${most} and (not ${withSignals} or c.positive + c.negative > 0)
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

/** A change of an organisation, and what a list shows of its prompt. */
export type ListedChange = {
  id: number
  commitSha: string
  promptId: number
  prompt: { id: string; name: string; repository: string | null; path: string | null }
}

/** Selects the newest changes of an organisation that match a query; of a commit also those that only begin like it. */
export const selectListedChanges = (
  sql: Sql,
  organisationId: number,
  { since, until, search, author, prompt, pr, commit }: ChangeListQuery,
  limit: number,
) =>
  sql<ListedChange>`
    select
      h.id, h.commit_sha as "commitSha", h.prompt_id as "promptId",
      json_build_object('id', p.public_id, 'name', p.name, 'repository', p.repository, 'path', p.path) as prompt
    from history_changes h
    join prompts p on p.id = h.prompt_id and p.organisation_id = h.organisation_id
    where h.organisation_id = ${organisationId}
      and h.created_at >= coalesce(${since}, '-infinity'::timestamptz)
      and h.created_at <= coalesce(${until}, 'infinity'::timestamptz)
      and (p.public_id = ${prompt} or ${prompt}::text is null and not p.archived)
      and (
        ${search}::text is null
        or strpos(lower(concat_ws(chr(10), p.name, p.public_id, p.path)), lower(${search}::text)) > 0
      )
      and (${author}::text is null or strpos(lower(h.user_name || ' ' || h.authors::text), lower(${author}::text)) > 0)
      and (${pr}::text is null or h.pr_number::text = ${pr} or h.pr_url = ${pr})
      and (${commit}::text is null or left(h.commit_key, 7) = left(lower(${commit}::text), 7))
    order by h.created_at desc, h.id desc
    limit ${limit}`

/** Selects the newest history entry of each of these commits. Entries that went live come first, then newer ones. */
export const selectCommitEntries = (
  sql: Sql,
  { id, organisationId }: OwnedPrompt,
  commits: Spellings[],
  liveActions: string[],
) =>
  sql<EntryRow>`
    select *
    from (
      select distinct on (lower(h.commit_sha)) h.*, h.action = any(${liveActions}::text[]) as has_live_action
      from unnest(${commits.map(({ low }) => low)}::text[], ${commits.map(({ high }) => high)}::text[]) given (low, high)
      cross join lateral (
        select h.*
        from history_rows h
        where h.organisation_id = ${organisationId} and h.prompt_id = ${id}
          and lower(h.commit_sha) between given.low and given.high
        -- Makes Postgres search by commit, even if its statistics say that the table is small.
        offset 0
      ) h
      order by lower(h.commit_sha), has_live_action desc, h.created_at desc, h.id desc
    ) h
    order by h.has_live_action desc, h.created_at desc, h.id desc`
