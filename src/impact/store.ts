import type { Sql } from '../db/client.ts'
import type { EntryRow } from '../history/schema.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { ChangeWindow } from './attribute.ts'
import type { ImpactQuery } from './schema.ts'

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
      h.id, h.prompt_id, h.action, h.user_name, h.user_email, h.commit_sha, h.branch_name, h.pr_number, h.pr_url,
      h.created_at, h.title, w.before_id,
      (
        select later.created_at
        from history_changes later
        where later.organisation_id = h.organisation_id and later.prompt_id = h.prompt_id
          and (later.created_at, later.id) > (h.created_at, h.id)
        order by later.created_at, later.id
        limit 1
      ) as live_until,
      h.commit_key,
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
