import { afterAll, beforeAll, expect, test } from 'bun:test'
import postgres from 'postgres'
import { auditWrites } from '../faults/audit_writes.ts'
import { type Author, createWriteLedger, PATH, REPOSITORY, startWriters } from '../faults/writes.ts'
import { inFullRun } from '../full.ts'
import { eventually } from '../program.ts'
import { createProxy, type TcpProxy } from '../proxy.ts'
import { useProgram } from '../use.ts'

const CUTS = inFullRun(12, 4)
/** As many as there are writers, so that it is the turn of each. */
const ACKNOWLEDGED_BETWEEN_CUTS = 28

let proxy: TcpProxy
let author: Author

const { operator, server, settings, tenant } = useProgram(async () => {
  proxy = await createProxy(settings.DATABASE_URL as string)
  return { DATABASE_URL: proxy.url }
})

beforeAll(async () => {
  const file = ['--repository', REPOSITORY, '--path', PATH]
  const linked = await operator.one('prompts', 'create', '--org', tenant.org, '--name', 'Linked', ...file)
  const { secret } = await operator.one('webhooks', 'github', 'set', '--org', tenant.org)
  author = { ...tenant, organisation: 0, linkedPrompt: linked.id, secret }
})

afterAll(() => proxy.close())

test('history and deliveries: what is acknowledged is recorded once, every answer comes in time, and no session stays open', async () => {
  const ledger = createWriteLedger()
  const replica = { name: 'A', url: server.url }
  const writers = Array.from({ length: 4 }, () => startWriters(ledger, [replica], author))
  const countAcknowledged = () => ledger.attempts.filter(({ status }) => status === 200 || status === 201).length
  for (let cut = 0; cut < CUTS; cut++) {
    const before = countAcknowledged()
    await Bun.sleep(300 + 50 * (cut % 12))
    // Connections that are cut before a slow machine has opened them would make every writer wait for several cuts.
    await eventually(() => countAcknowledged() >= before + ACKNOWLEDGED_BETWEEN_CUTS, true)
    proxy.cut(cut % 2 === 0 ? 'reset' : 'end')
  }
  await Promise.all(writers.map((one) => one.stop()))

  const sql = postgres(settings.DATABASE_URL as string, { max: 1 })
  const { figures, problems } = await auditWrites(sql, ledger, 0, author, replica)
  expect({ figures, problems }).toEqual({ figures: expect.any(String), problems: [] })
  const failed = ledger.attempts.filter(({ status }) => status === 503)
  expect(failed.length).toBeGreaterThan(0)
  expect(server.stdout()).not.toContain('UNSAFE_TRANSACTION')
  await eventually(
    () => sql`
      select pid from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`,
    [],
  )
  await sql.end()
})
