import type { Sql } from '../db/client.ts'

/** In percent of the monthly limit, ascending. */
export const thresholds = [80, 100] as const

export type UsedMonth = { organisationId: number; id: string; name: string; used: number; limit: number }

/** The organisations that want to know, have reached a threshold, and were not told. */
export const selectUntold = (sql: Sql, month: string) =>
  sql<UsedMonth>`
    select o.id as "organisationId", o.public_id as id, o.name, u.used, u.monthly_limit as limit
    from (
      select distinct e.organisation_id as id
      from webhook_endpoints e
      where e.disabled_at is null and (e.events is null or 'usage.threshold' = any (e.events))
    ) e
    join organisations o on o.id = e.id
    cross join lateral usages_of(array[o.id], array[${month}::text::date]) u
    where u.monthly_limit > 0
      and exists (
        select from unnest(${thresholds.map(String)}::text[]::integer[]) reached (percent)
        where u.used * 100::bigint >= u.monthly_limit * reached.percent::bigint
          and not exists (
            select from told_thresholds t
            where t.organisation_id = o.id and t.month = ${month}::text::date and t.threshold = reached.percent
          )
      )`

/** Returns false if the organisation was told before. */
export async function insertTold(sql: Sql, organisationId: number, month: string, threshold: number): Promise<boolean> {
  const rows = await sql`
    insert into told_thresholds (organisation_id, month, threshold)
    values (${organisationId}, ${month}::text::date, ${threshold})
    on conflict do nothing
    returning 1`
  return rows.length > 0
}
