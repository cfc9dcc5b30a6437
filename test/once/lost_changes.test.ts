// A failover that loses changes: under two running replicas, the database becomes an earlier copy of itself.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { systemClock } from '../../src/clock.ts'
import { type Db, openClient } from '../../src/db/client.ts'
import { createServices, type Services } from '../../src/deps.ts'
import { recordEntry } from '../../src/history/record.ts'
import { createLog } from '../../src/log.ts'
import type { Listener } from '../../src/platform.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { type Answer, type Client, createClient } from '../client.ts'
import { inFullRun } from '../full.ts'
import { createTenant, eventually } from '../program.ts'
import { createProxy, type TcpProxy } from '../proxy.ts'
import { entry, serve, type Tenant } from '../service.ts'
import { withPostgres } from '../services.ts'
import { urlOfDatabase } from '../templates.ts'
import { openDb } from '../tenant.ts'
import { useDatabase } from '../use.ts'

const rounds = inFullRun(20, 5)
const marker = 'of-the-new-tenant'

const { settings } = useDatabase()
let proxy: TcpProxy
const replicas: { services: Services; listener: Listener; client: Client }[] = []

const url = () => settings.DATABASE_URL as string
const name = () => new URL(url()).pathname.slice(1)

const asAdmin = <T>(use: Parameters<typeof withPostgres<T>>[1]): Promise<T> =>
  withPostgres(urlOfDatabase(url(), 'postgres'), use)

async function onDatabase<T>(use: (db: Db) => Promise<T>): Promise<T> {
  const db = await openDb(settings)
  return use(db).finally(db.close)
}

beforeAll(async () => {
  await asAdmin((sql) => sql`create database ${sql(`${name()}_earlier`)} template ${sql(name())}`)
  proxy = await createProxy(url())
  for (let number = 0; number < 2; number++) {
    const db = openClient({ url: proxy.url, ssl: false }, { queryTimeoutMs: 4_500, maxConnections: 10 })
    const services = createServices({ db, clock: systemClock, log: createLog('silent') })
    const listener = serve(services)
    replicas.push({ services, listener, client: await createClient(listener.url) })
  }
})

afterAll(async () => {
  for (const { services, listener } of replicas) {
    await listener.stop()
    await services.close()
  }
  proxy.close()
})

/** Every kind of request that names a prompt, on both replicas, one after another until it is stopped. */
function load({ prompt, key }: Tenant) {
  let isStopped = false
  const path = `/prompts/${prompt}`
  const signal = { value: 'positive' }
  const requests: ((client: Client) => Promise<Answer>)[] = [
    (client) => client.postSignal(prompt, key),
    (client) => client.post(`${path}/signals`, key, signal, { 'idempotency-key': crypto.randomUUID() }),
    (client) => client.post(`${path}/signals/batch`, key, { signals: [signal, signal] }),
    (client) => client.post(`${path}/history`, key, entry()),
    (client) => client.get(`${path}/signals`, key),
    (client) => client.get(`${path}/stats`, key),
    (client) => client.getHistory(prompt, key),
  ]
  const answers = replicas.flatMap(() => requests.map(() => [] as Answer[]))
  const callers = replicas.flatMap(({ client }, replica) =>
    requests.map(async (send, kind) => {
      while (!isStopped) answers[replica * requests.length + kind]?.push(await send(client))
    }),
  )
  return {
    answers,
    /** Waits until every request was answered in this way. */
    answered: (isThis: (answer: Answer) => boolean) =>
      eventually(() => answers.filter((ofKind) => !ofKind.slice(-20).some(isThis)).length, 0),
    async stop() {
      isStopped = true
      await Promise.all(callers)
    },
  }
}

test('nothing of a tenant that was lost is recorded for, or shown of, the one that has its row ids now', async () => {
  for (let round = 0; round < rounds; round++) {
    const lost = await createTenant(settings, 1_000_000)
    const lostIds = await onDatabase((db) => requirePrompt(db.sql, lost.prompt))
    const loading = load(lost)
    await loading.answered(({ status }) => status < 300)

    proxy.setClosing(true)
    proxy.cut(round % 2 === 0 ? 'reset' : 'end')
    await asAdmin(async (sql) => {
      await sql`drop database ${sql(name())} with (force)`
      await sql`create database ${sql(name())} template ${sql(`${name()}_earlier`)}`
    })
    const isRefused = ({ status }: Answer) => status === 401 || status === 404
    await onDatabase(async (db) => {
      await db.sql`
        select setval('organisations_id_seq', ${lostIds.organisationId}, false), setval('prompts_id_seq', ${lostIds.id}, false)`
      const tenant = await createTenant(settings, 1_000_000)
      const found = await requirePrompt(db.sql, tenant.prompt)
      expect(found).toMatchObject({ id: lostIds.id, organisationId: lostIds.organisationId })
      await recordEntry(db, systemClock, found, entry({ commit_sha: marker }))
      await db.sql`
        insert into signals (organisation_id, prompt_id, value, metadata, created_at)
        values (${found.organisationId}, ${found.id}, 'negative', ${`{"a":"${marker}"}`}::text::jsonb, now())`
      proxy.setClosing(false)
      await loading.answered(isRefused)
      await loading.stop()

      const [rows] = await db.sql`
        select
          (select count(*) from signals) as signals, (select count(*) from history_entries) as entries,
          (select count(*) from signal_usage) as months, (select count(*) from idempotency_keys) as keys`
      expect(rows).toEqual({ signals: 1, entries: 1, months: 0, keys: 0 })
    })
    const shown = loading.answers.flat().filter(({ text }) => text.includes(marker) || text.includes('"negative":1'))
    expect(shown).toEqual([])
  }
}, 300_000)
