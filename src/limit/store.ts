import type { Sql } from '../db/client.ts'
import type { Usage, UsageMonth } from './schema.ts'

const arrayOf = (words: unknown[]): string => `{${words.join(',')}}`

/** The use and the limit of each organisation's month, in the order of the keys. */
export const readUsages = (sql: Sql, keys: UsageMonth[]): Promise<Usage[]> =>
  sql<Usage>`
    select used, monthly_limit as limit
    from read_usages(
      ${arrayOf(keys.map(({ organisationId }) => organisationId))}::text::bigint[],
      ${arrayOf(keys.map(({ month }) => `${month.name}-01`))}::text::date[]
    )
    order by number`

type MonthUsage = { plan: string; limit: number; used: number }

/** What an organisation has used of a month, as it was counted for the limit. */
export async function selectUsage(sql: Sql, organisationId: number, month: string): Promise<MonthUsage | undefined> {
  const [row] = await sql<MonthUsage>`
    select o.plan, u.monthly_limit as limit, u.used
    from read_usages(array[${organisationId}::bigint], array[${`${month}-01`}::text::date]) u
    cross join lateral (select o.plan from organisations o where o.id = ${organisationId} limit 1) o`
  return row
}
