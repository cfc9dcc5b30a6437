import type { Sql } from '../db/client.ts'

export type Table = {
  name: string
  columns: { name: string; type: string; isJson: boolean }[]
  needs: string[]
}

/** The texts of prompts may have 256 KiB each. */
const fetchSizeOf = (table: string): number => (table === 'history_entries' ? 50 : 1_000)

/** Values are written as text, which must not depend on the settings of the server or of the user. */
const exactTexts = `
  set local datestyle = 'ISO, YMD';
  set local intervalstyle = 'postgres';
  set local timezone = 'UTC';
  set local bytea_output = 'hex';
  set local extra_float_digits = 1;
  set local statement_timeout = 0;
  set local idle_in_transaction_session_timeout = 0;`

export const beginSnapshot = (sql: Sql) =>
  sql.script(`set transaction isolation level repeatable read, read only; ${exactTexts}`)

/** Rows may reference later rows of their table, so constraints are checked at the end. */
export const beginLoad = (sql: Sql) => sql.script(`set constraints all deferred; ${exactTexts}`)

export const checkConstraints = (sql: Sql) => sql.script('set constraints all immediate')

/**
 * Every table except the list of migrations, each after those that its foreign keys reference. Unlogged tables hold
 * nothing lasting, and cannot be read on a standby.
 */
export async function listTables(sql: Sql): Promise<Table[]> {
  const waiting = await sql<Table>`
    select
      c.relname::text as name,
      (
        select json_agg(json_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod),
          'isJson', coalesce(nullif(t.typbasetype, 0), t.oid) in ('json'::regtype, 'jsonb'::regtype))
          order by a.attnum)
        from pg_attribute a join pg_type t on t.oid = a.atttypid
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
      ) as columns,
      to_json(array(
        select distinct t.relname::text
        from pg_constraint f join pg_class t on t.oid = f.confrelid
        where f.conrelid = c.oid and f.contype = 'f' and t.oid <> c.oid
      )) as needs
    from pg_class c
    where c.relnamespace = to_regnamespace(current_schema()) and c.relkind in ('r', 'p') and not c.relispartition
      and c.relpersistence = 'p'
      and c.relname <> 'schema_migrations'
    order by c.relname`
  const ordered: Table[] = []
  while (waiting.length > 0) {
    const next = waiting.findIndex(({ needs }) => needs.every((name) => ordered.some((table) => table.name === name)))
    if (next === -1) throw new Error(`The tables ${waiting.map(({ name }) => name)} reference each other in a circle.`)
    ordered.push(...waiting.splice(next, 1))
  }
  return ordered
}

/** Estimates the number of all rows from the last statistics; null without statistics, for example in a new database. */
export async function estimateRows(sql: Sql): Promise<number | null> {
  const [row] = await sql<{ rows: number | null }>`
    select sum(reltuples) filter (where reltuples > 0)::float8 as rows
    from pg_class
    where relnamespace = to_regnamespace(current_schema()) and relkind = 'r'`
  return row?.rows ?? null
}

/** Reads the rows, each a JSON array of strings and nulls, in batches that fit into memory. */
export async function* readRows(sql: Sql, { name, columns }: Table): AsyncGenerator<string[]> {
  const fetchSize = fetchSizeOf(name)
  const values = columns.map((column) => `${quote(column.name)}::text`)
  await sql.dynamic(`
    declare rows_to_back_up no scroll cursor for
    select json_build_array(${values})::text as line from ${quote(name)}`)
  for (;;) {
    const rows = await sql.dynamic<{ line: string }>(`fetch ${fetchSize} from rows_to_back_up`)
    if (rows.length > 0) yield rows.map(({ line }) => line)
    if (rows.length < fetchSize) break
  }
  await sql.dynamic('close rows_to_back_up')
}

export async function insertRows(sql: Sql, { name, columns }: Table, lines: string[]): Promise<void> {
  const values = columns.map(({ type }, index) => `(line ->> ${index})::${type}`)
  await sql.dynamic(
    `insert into ${quote(name)} (${columns.map((column) => quote(column.name))})
    overriding system value
    select ${values} from json_array_elements($1::text::json) line`,
    [`[${lines.join()}]`],
  )
}

export async function findFilledTable(sql: Sql, tables: Table[]): Promise<string | undefined> {
  for (const { name } of tables) {
    const [row] = await sql.dynamic(`select from ${quote(name)} limit 1`)
    if (row) return name
  }
  return undefined
}

/** So that a copy of a service sends nothing until somebody enables its endpoints. */
export async function disableEndpoints(sql: Sql): Promise<number> {
  const rows = await sql`
    update webhook_endpoints set disabled_at = now(), disabled_reason = 'restored'
    where disabled_at is null
    returning 1`
  return rows.length
}

export const selectSequences = (sql: Sql): Promise<{ name: string; value: string }[]> =>
  sql`
    select sequencename::text as name, last_value::text as value
    from pg_sequences
    where schemaname = current_schema() and last_value is not null
    order by 1`

export const setSequence = (sql: Sql, name: string, value: string) =>
  sql`select setval(format('%I', ${name}::text)::regclass, ${value}::text::bigint)`

/** Updates the statistics; without them the first queries are planned as if the tables were empty. */
export const analyse = (sql: Sql, tables: Table[]) => sql.dynamic(`analyze ${tables.map(({ name }) => quote(name))}`)

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`
