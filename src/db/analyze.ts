import type { Db } from './client.ts'

/** A smaller table is read quickly with any plan. */
const minPages = 8
/** Larger tables no longer grow fourfold within the minute after which Postgres looks at them. */
const maxPages = 4_096

/**
 * Analyses the tables that have grown fourfold since the last time: Postgres looks only once a minute, and until then a
 * plan for an empty table would scan the full one. Skips tables of another role or in use by another replica, and those
 * without a committed row: analysed while the first transaction fills it, a table would count as empty until that ends.
 */
export async function analyzeGrownTables({ sql }: Db): Promise<void> {
  // The size is known immediately, and also grows when few rows are updated often while a held snapshot prevents their
  // pruning. The number of rows is known later, but finds a table that was analysed while a large transaction filled it.
  const tables = await sql<{ name: string }>`
    select c.oid::regclass::text as name
    from pg_class c, cast(pg_relation_size(c.oid) / current_setting('block_size')::int as int) pages
    where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and pg_has_role(c.relowner, 'usage')
      and pages between ${minPages} and ${maxPages} and pg_stat_get_live_tuples(c.oid) > 0
      and (pages >= 4 * c.relpages or pg_stat_get_live_tuples(c.oid) >= 4 * greatest(c.reltuples, 100))`
  for (const { name } of tables) await sql.dynamic(`analyze (skip_locked) ${name}`)
}
