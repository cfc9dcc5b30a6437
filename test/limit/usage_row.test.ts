import { expect, test } from 'bun:test'
import { systemClock } from '../../src/clock.ts'
import { analyzeGrownTables } from '../../src/db/analyze.ts'
import type { Db } from '../../src/db/client.ts'
import { monthOf } from '../../src/lib/months.ts'
import type { Admission } from '../../src/limit/admit.ts'
import { readUsages } from '../../src/limit/store.ts'
import { type Prompt, requirePrompt } from '../../src/prompts/find.ts'
import { createSignalRecorder, isSlowWrite } from '../../src/signals/record.ts'
import { writeSignals } from '../../src/signals/store.ts'
import { countOf } from '../signals/fixtures.ts'
import { useOwnService } from '../use.ts'

const service = useOwnService()

test('nothing is counted on a snapshot that may be older than the lock', async () => {
  const { sql } = service.services.db
  await sql.script('create table said (message text)')
  // A script is one transaction.
  await sql.script(`
    set transaction isolation level repeatable read;
    do $$
    begin
      perform write_signals(
        '{1}', '{2026-11-01}', '{1}', '{1}', '{1}', '{pmt_1}', '{1}', '{1}', '{true}', null, '{0}', null, null, null, null,
        null, null, null, null, null, 1
      );
    exception when others then
      insert into said values (sqlerrm);
    end
    $$`)
  const message = 'write_signals needs the isolation level read committed'
  expect(await sql`select message from said`).toEqual([{ message }])
})

test('finding a count costs the same however many of its versions cannot be removed yet', async () => {
  const { db } = service.services
  const tenant = await service.createTenant(1_000_000)
  const { id, organisationId } = await requirePrompt(db.sql, tenant.prompt)
  const month = monthOf(new Date())
  const read = `usages_of('{${organisationId}}', '{${month.name}-01}')`
  // Versions made by a transaction stay until it ends, like those made while a snapshot is held.
  const blocks = await db.transaction(
    async (sql) => {
      const write = `write_signals(
      '{${organisationId}}', '{${month.name}-01}', '{1}', '{${id}}', '{${organisationId}}', '{${tenant.prompt}}', '{1}',
      '{1}', '{true}', null, '{0}', null, null, null, null, null, null, null, null, null, 1
    )`
      await sql.script(`
      do $$
      begin
        for n in 1 .. 200 loop
          perform ${write};
        end loop;
      end
      $$`)
      // The plan for a small table is kept.
      await sql.dynamic('analyze signal_usage')
      await sql.dynamic(`prepare read_usage as select * from ${read}`)
      await sql.dynamic('execute read_usage')
      await sql.script(`
      do $$
      begin
        -- A scan of the table in each round would make this too slow for the embedded engine.
        set local enable_seqscan = off;
        for n in 1 .. 2000 loop
          update signal_usage set used = used + 200, block = block + 1
          where organisation_id = ${organisationId} and month = '${month.name}-01' and block = n;
        end loop;
        set local enable_seqscan = on;
      end
      $$`)
      await sql.dynamic(`select ${write}`)
      await analyzeGrownTables({ ...db, sql })
      await sql.dynamic('execute read_usage')
      const [plan] = await sql.dynamic('explain (analyze, buffers, format json) execute read_usage')
      await sql.dynamic('deallocate read_usage')
      return Object.values(plan as object)[0][0].Plan['Shared Hit Blocks']
      // More than a request has: making the versions takes long on a busy machine.
    },
    { tenant: organisationId, deadline: performance.now() + 60_000 },
  )
  expect(blocks).toBeLessThan(12)
  expect(await readUsages(db.sql, [{ organisationId, month }])).toEqual([{ used: 400_201, limit: 1_000_000 }])
  const rows = await db.sql`select used from signal_usage where organisation_id = ${organisationId}`
  expect(rows).toEqual([{ used: 400_201 }])
})

test('only after a slow write does the next one commit early', async () => {
  expect([0, 3, 8, 10, 4_500].map((tookMs) => isSlowWrite(tookMs, 1))).toEqual([false, false, false, true, true])
  expect([10, 12, 30].map((tookMs) => isSlowWrite(tookMs, 100))).toEqual([false, true, true])
  const texts: TemplateStringsArray[] = []
  const sql = async (text: TemplateStringsArray, ...values: unknown[]) => {
    texts.push(text)
    await Bun.sleep(20)
    const write = values.at(-1)
    return [{ result: { write, ids: [1], usedBefore: [0], monthLimits: [10] } }]
  }
  const db = { sql, isEmbedded: false } as unknown as Db
  const admission = { admit: () => undefined, applyUsages() {} } as unknown as Admission
  const recorder = createSignalRecorder({ db, admission }, systemClock)
  const prompt = { id: 1, organisationId: 1, publicId: 'pmt_1' } as Prompt
  const signal = { value: 'positive', metadata: null, idempotencyKey: null } as const
  for (let n = 0; n < 3; n += 1) await recorder.record(prompt, signal, Number.POSITIVE_INFINITY)
  expect(texts.map(([start]) => start?.startsWith('call commit_early('))).toEqual([false, true, true])
  // The driver would keep a new text of each write until the process ends.
  expect(texts[2]).toBe(texts[1] as TemplateStringsArray)
})

test.each([false, true])('outcomes and counts are the same when commits are early: %p', async (commitsEarly) => {
  const { sql } = service.services.db
  const tenant = await service.createTenant(2)
  const prompt = await requirePrompt(sql, tenant.prompt)
  const [createdAt, month] = [new Date(), monthOf(new Date())]
  const write = (...sent: [value: 'positive' | 'negative', idempotencyKey: string | null][]) => {
    const common = { prompt, metadata: null, createdAt, month, browserKey: null }
    const signals = sent.map(([value, idempotencyKey]) => ({ ...common, value, idempotencyKey }))
    return writeSignals(sql, signals, { commitsEarly })
  }
  const outcomesOf = async (...sent: Parameters<typeof write>) =>
    (await write(...sent)).map(({ outcome, used }) => `${outcome} ${used}`)
  expect(await outcomesOf(['positive', 'a'])).toEqual(['recorded 1'])
  const second = await outcomesOf(['positive', 'a'], ['negative', null], ['positive', null], ['positive', 'b'])
  expect(second).toEqual(['replayed 1', 'recorded 2', 'refused 2', 'refused 2'])
  expect(await outcomesOf(['negative', 'a'], ['positive', null])).toEqual(['conflict 2', 'refused 2'])
  expect(await countOf(service, tenant)).toEqual({ rows: 2, used: 2 })
})
