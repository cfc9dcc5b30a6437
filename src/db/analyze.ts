import type { Db } from './client.ts'

/** A smaller table is read quickly with any plan. */
const minRows = 500
/** Larger tables no longer grow fourfold within the minute after which Postgres looks at them. */
const maxRows = 200_000
/** The same in pages: a held snapshot makes a table of few rows that are updated often grow, because none is pruned. */
const [minPages, maxPages] = [16, 4_000]

/**
 * Analyses the tables that have grown fourfold since they were last analysed. Postgres itself looks only once a minute:
 * until then, a plan made for an empty table would scan the full one. Skips tables that another replica is analysing,
 * and those of another role, which only their owner may analyse.
 */
export async function analyzeGrownTables({ sql }: Db): Promise<void> {
  const tables = await sql<{ name: string }>`
    select c.oid::regclass::text as name
    from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relkind = 'r' and pg_has_role(c.relowner, 'usage')
      and (
        pg_stat_get_live_tuples(c.oid) between greatest(${minRows}, 4 * c.reltuples) and ${maxRows}
        or pg_relation_size(c.oid) / current_setting('block_size')::integer
          between greatest(${minPages}, 4 * c.relpages) and ${maxPages}
      )`
  for (const { name } of tables) await sql.dynamic(`analyze (skip_locked) ${name}`)
}
