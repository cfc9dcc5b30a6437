import { expect, test } from 'bun:test'
import { analyzeGrownTables } from '../../src/db/analyze.ts'
import { engine } from '../harness.ts'
import { useOwnService } from '../use.ts'

const service = useOwnService()

// The embedded engine runs one transaction at a time.
if (engine === 'postgres') {
  test('a table that its first transaction still fills is not analysed: it would count as empty', async () => {
    const { db } = service.services
    await db.sql.script('create table filled (id integer) with (autovacuum_enabled = off)')
    const read = async () => {
      const [row] = await db.sql<{ rows: number }>`select reltuples as rows from pg_class where relname = 'filled'`
      return row?.rows
    }
    await db.transaction(async (sql) => {
      await sql`insert into filled select generate_series(1, 20000)`
      await analyzeGrownTables(db)
      expect(await read()).toBe(-1)
    })
  })
}
