import { expect, test } from 'bun:test'
import { readRows } from '../rows_read.ts'
import { useOwnService } from '../use.ts'
import { deployed, rollUp } from './history.ts'

const service = useOwnService()

const changes = 30
const madeUp = 3_000
const hour = 3_600_000
const start = Date.UTC(2026, 9, 1)
const commitOf = (n: number): string => new Bun.CryptoHasher('sha1').update(`change ${n}`).digest('hex')

test('an organisation that names a new commit with every signal does not make its impact slow', async () => {
  const { db } = service.services
  const { prompt, key } = await service.createTenant()
  await service.addHistory(
    prompt,
    Array.from({ length: changes }, (_, n) => deployed(commitOf(n), new Date(start + n * hour).toISOString())),
  )
  await db.sql`
    insert into signals (organisation_id, prompt_id, value, metadata, created_at)
    select p.organisation_id, p.id, 'positive', jsonb_build_object('commit_sha', encode(sha256(n::text::bytea), 'hex')),
      ${new Date(start)}::timestamptz + n * interval '36 seconds'
    from prompts p, generate_series(0, ${madeUp - 1}::integer) n
    where p.public_id = ${prompt}`
  for (let rolledUp = 0; rolledUp < madeUp; rolledUp += 500) await rollUp(service, prompt, 500)
  await db.sql.script('analyze')
  for (const path of [`/api/v1/prompts/${prompt}/impact?limit=100`, '/api/v1/impact']) {
    const before = await readRows(db, 'index')
    const { body } = await service.call('GET', path, { key })
    const after = await readRows(db, 'index')
    const rowsOf = (table: string) => (after.get(table) ?? 0) - (before.get(table) ?? 0)
    expect(rowsOf('signal_commit_counts'), path).toBeLessThan(10 * changes)
    expect(rowsOf('history_entries'), path).toBeLessThan(20 * changes)
    if (body.data.length === changes)
      expect(body.data.reduce((sum: number, one: { signals: { total: number } }) => sum + one.signals.total, 0)).toBe(
        madeUp,
      )
  }
})
