import { beforeAll, expect, test } from 'bun:test'
import type { Sql } from 'postgres'
import type { Answer } from '../client.ts'
import { createTenant, eventually, whileLocked } from '../program.ts'
import { entry } from '../service.ts'
import { withPostgres } from '../services.ts'
import { useProgram } from '../use.ts'

const { client, operator, settings, tenant } = useProgram()

// Known before, as nearly every key and prompt is.
beforeAll(async () => expect((await client.postSignal(tenant.prompt, tenant.key)).status).toBe(201))

const statusesOf = async (answers: Promise<Answer>[]) => (await Promise.all(answers)).map(({ status }) => status)
const times = <T>(count: number, send: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => send(index))

const expectSignalsTaken = async () =>
  expect(await statusesOf(times(5, () => client.postSignal(tenant.prompt, tenant.key)))).toEqual(Array(5).fill(201))

test('pages with filters, which can take long, leave connections to all others', async () => {
  let pages: Promise<Answer>[] = []
  await whileLocked(settings, 'lock table history_entries in access exclusive mode', async () => {
    pages = times(60, (index) => client.getHistory(tenant.prompt, tenant.key, `?branch=b${index}`))
    const rejected = await Promise.race(pages)
    expect([rejected.status, rejected.headers.get('retry-after')]).toEqual([503, '1'])
    await expectSignalsTaken()
  })
  // Two were read and fifty waited; the others were rejected immediately, with Retry-After.
  expect((await statusesOf(pages)).sort()).toEqual([...Array(52).fill(200), ...Array(8).fill(503)])
})

const postHistory = ({ prompt, key }: { prompt: string; key: string }, commit: string): Promise<Answer> =>
  client.post(`/prompts/${prompt}/history`, key, entry({ commit_sha: commit }))

const whilePromptHeld = <T>(held: string, work: () => Promise<T>): Promise<T> =>
  whileLocked(settings, `select from prompts where public_id = '${held}' for update`, work)

const commitsOf = async ({ prompt, key }: { prompt: string; key: string }): Promise<string[]> =>
  (await client.getHistory(prompt, key, '?limit=100')).body.data.map((one: { commit_sha: string }) => one.commit_sha)

test('while a prompt is held, other prompts, organisations and signals go on, and its entries are written when it is free', async () => {
  const [held, other] = await Promise.all([createTenant(settings), createTenant(settings)])
  const { id: secondPrompt } = await operator.one('prompts', 'create', '--org', held.org, '--name', 'second')
  // More than there are connections; few, because they wait for all others, and for four seconds at most.
  const commits = times(12, (index) => `c${index}`)
  let waiting: Promise<Answer>[] = []
  await whilePromptHeld(held.prompt, async () => {
    waiting = commits.map((commit) => postHistory(held, commit))
    const others = [other, { ...held, prompt: secondPrompt }]
    const answers = commits.flatMap((commit) => others.map((one) => postHistory(one, commit)))
    expect(await statusesOf(answers)).toEqual(Array(24).fill(201))
    await expectSignalsTaken()
  })
  expect(await statusesOf(waiting)).toEqual(Array(12).fill(201))
  expect((await commitsOf(held)).sort()).toEqual(commits.sort())
})

test('what was answered with a 503 while its prompt was held is not written later', async () => {
  const held = await createTenant(settings)
  const post = () => statusesOf(times(30, (index) => postHistory(held, `c${index}`)))
  expect(await whilePromptHeld(held.prompt, post)).toEqual(Array(30).fill(503))
  // This one is written after everything that might still be queued.
  expect((await postHistory(held, 'after')).status).toBe(201)
  expect(await commitsOf(held)).toEqual(['after'])
})

/** As another transaction that writes signals holds it. */
const whileOrganisationHeld = <T>(org: string, work: () => Promise<T>): Promise<T> =>
  whileLocked(
    settings,
    `select pg_advisory_xact_lock(5167, id::integer) from organisations where public_id = '${org}'`,
    work,
  )

test('a batch is written when its organisation is free, also after a lock timeout', async () => {
  const held = await createTenant(settings)
  let waiting: Promise<Answer> | undefined
  await whileOrganisationHeld(held.org, async () => {
    waiting = client.post(`/prompts/${held.prompt}/signals/batch`, held.key, { signals: [{ value: 'positive' }] })
    const attempts = new Set<string>()
    const countAttempts = async (sql: Sql) => {
      const waiting = await sql`
        select xact_start::text as begun_at from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%write_signals%'`
      for (const { begun_at } of waiting) attempts.add(begun_at)
      return attempts.size > 1
    }
    await withPostgres(settings.DATABASE_URL as string, (sql) => eventually(() => countAttempts(sql), true))
  })
  expect((await waiting)?.body).toMatchObject({ data: [{ status: 201 }] })
})

test('a signal that was answered with a 503 while its organisation was held is not written later, nor is its retry', async () => {
  const held = await createTenant(settings)
  const keyed = { 'idempotency-key': 'once' }
  const post = () => client.post(`/prompts/${held.prompt}/signals`, held.key, { value: 'positive' }, keyed)
  expect(await whileOrganisationHeld(held.org, () => statusesOf(times(3, post)))).toEqual([503, 503, 503])
  const { status, headers } = await post()
  expect([status, headers.get('idempotent-replayed')]).toEqual([201, null])
  expect(headers.get('ratelimit')).toStartWith('"signals";r=999;')
})

test('changes of a key that is held leave transactions to the keys of other organisations', async () => {
  const [held, other] = await Promise.all(
    [1, 2].map(async () => {
      const { org } = await createTenant(settings)
      return operator.one('keys', 'create', '--org', org, '--preset', 'admin')
    }),
  )
  const rename = (one: typeof held, name: string) => client.patch(`/keys/${one?.id}`, one?.key, { name })
  let waiting: Promise<Answer>[] = []
  await whileLocked(settings, `select from api_keys where public_id = '${held?.id}' for update`, async () => {
    waiting = times(10, (index) => rename(held, `name ${index}`))
    // Only locks of this database count: other tests run beside this one.
    const countWaiting = async (sql: Sql) => {
      const locks = await sql`
        select from pg_locks
        where not granted and pid in (
          select l.pid from pg_locks l join pg_database d on d.oid = l.database where d.datname = current_database()
        )`
      return locks.length > 1
    }
    await withPostgres(settings.DATABASE_URL as string, (sql) => eventually(() => countWaiting(sql), true))
    expect((await rename(other, 'other')).status).toBe(200)
    expect((await client.post('/keys', other?.key, { name: 'made' })).status).toBe(201)
  })
  expect(await statusesOf(waiting)).toEqual(Array(10).fill(200))
})
