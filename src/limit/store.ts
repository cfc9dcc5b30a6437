import type { Sql } from '../db/client.ts'
import type { Usage, UsageMonth } from './schema.ts'

/** The usage and the limit of each month, in the order given. */
export const readUsages = (sql: Sql, months: UsageMonth[]): Promise<Usage[]> =>
  sql<Usage>`
    select used, monthly_limit as limit
    from usages_of(
      ${months.map(({ organisationId }) => String(organisationId))}::text[]::bigint[],
      ${months.map(({ month }) => month.date)}::text[]::date[]
    )
    order by number`
