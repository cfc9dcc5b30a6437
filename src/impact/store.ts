import type { Sql } from '../db/client.ts'
import type { showTitledEntry } from '../history/read.ts'
import type { ChangeWindow } from './attribute.ts'

/** A history entry that went live, and its window. */
export type Change = Parameters<typeof showTitledEntry>[0] & ChangeWindow & { prompt_id: number }

/** The live change of each of these prompts, and those of its newest `limit` ones that went live from `since` on. */
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

/** Those of these entries that are changes, of any prompt of the organisation, and the changes before them. */
export const selectChanges = (sql: Sql, organisationId: number, ids: number[]): Promise<Change[]> =>
  sql<Change>`
    with given as (
      select
        h.id,
        (
          select before.id
          from history_changes before
          where before.organisation_id = h.organisation_id and before.prompt_id = h.prompt_id and (before.created_at, before.id) < (h.created_at, h.id)
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
        where later.organisation_id = h.organisation_id and later.prompt_id = h.prompt_id and (later.created_at, later.id) > (h.created_at, h.id)
        order by later.created_at, later.id
        limit 1
      ) as live_until,
      h.commit_key,
      (
        select h.created_at
        from history_changes earlier
        where earlier.organisation_id = h.organisation_id and earlier.prompt_id = h.prompt_id and earlier.commit_key = h.commit_key
          and (earlier.created_at, earlier.id) < (h.created_at, h.id)
        limit 1
      ) as named_from,
      (
        select later.created_at
        from history_changes later
        where later.organisation_id = h.organisation_id and later.prompt_id = h.prompt_id and later.commit_key = h.commit_key
          and (later.created_at, later.id) > (h.created_at, h.id)
        order by later.created_at, later.id
        limit 1
      ) as named_until
    from (
      select id, before_id from given
      union all
      select before_id, null from given where before_id not in (select id from given)
    ) w
    join history_changes h on h.organisation_id = ${organisationId} and h.id = w.id`

/** The commits of all changes of these prompts, in lower case. */
export const selectChangeCommits = (sql: Sql, organisationId: number, promptIds: number[]) =>
  sql<{ prompt_id: number; commits: string[] }>`
    select prompt_id, json_agg(distinct commit_key) as commits
    from history_changes
    where organisation_id = ${organisationId} and prompt_id = any(${promptIds.map(String)}::text[]::bigint[])
    group by prompt_id`
