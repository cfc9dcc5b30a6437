import type { Sql } from '../db/client.ts'
import type { Usage, UsageMonth } from './schema.ts'

const toArray = (values: unknown[]): string => `{${values.join(',')}}`

/** The usage and the limit of each month, in the order given. */
export const readUsages = (sql: Sql, months: UsageMonth[]): Promise<Usage[]> =>
  sql<Usage>`
    select used, monthly_limit as limit
    from usages_of(
      ${toArray(months.map(({ organisationId }) => organisationId))}::text::bigint[],
      ${toArray(months.map(({ month }) => month.date))}::text::date[]
    )
    order by number`

/** The usage, the limit and the plan of an organisation; undefined if it does not exist. */
export async function selectUsage(sql: Sql, organisationId: number, month: string) {
  const [row] = await sql<Usage & { plan: string }>`
    select o.plan, u.monthly_limit as limit, u.used
    from organisations o
    cross join usages_of(array[o.id], array[${`${month}-01`}::text::date]) u
    where o.id = ${organisationId}`
  return row
}
