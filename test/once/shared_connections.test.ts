import { beforeAll, describe, expect, test } from 'bun:test'
import type { TransactionSql } from 'postgres'
import type { Answer } from '../client.ts'
import { createTenant, eventually } from '../program.ts'
import { entry } from '../service.ts'
import { withPostgres } from '../services.ts'
import { useProgram } from '../use.ts'

const { client, operator, settings, tenant } = useProgram()

// Known before, as nearly every key and prompt is.
beforeAll(async () => expect((await client.postSignal(tenant.prompt, tenant.key)).status).toBe(201))

/** Runs the work in a transaction on another connection, so that locks are held meanwhile. */
const inTransaction = <T>(work: (on: TransactionSql) => Promise<T>): Promise<T> =>
  withPostgres(settings.DATABASE_URL as string, (sql) => sql.begin(work)) as Promise<T>

async function expectSignalsTaken(): Promise<void> {
  const signals = Array.from({ length: 5 }, () => client.postSignal(tenant.prompt, tenant.key))
  expect((await Promise.all(signals)).map(({ status }) => status)).toEqual(Array(5).fill(201))
}

test('pages with filters, which can take long, leave connections to all others', async () => {
  let pages: Promise<Answer>[] = []
  await inTransaction(async (on) => {
    await on`lock table history_entries in access exclusive mode`
    const read = (branch: string) => client.getHistory(tenant.prompt, tenant.key, `?branch=${branch}`)
    pages = Array.from({ length: 30 }, (_, index) => read(`b${index}`))
    const rejected = await Promise.race(pages)
    expect([rejected.status, rejected.headers.get('retry-after')]).toEqual([503, '1'])
    await expectSignalsTaken()
  })
  // Two were read and twenty waited; the others were rejected immediately, with Retry-After.
  const statuses = (await Promise.all(pages)).map(({ status }) => status)
  expect(statuses.sort()).toEqual([...Array(22).fill(200), ...Array(8).fill(503)])
})

describe('while a prompt of one organisation is held', () => {
  const postHistory = (tenant: { prompt: string; key: string }, commit: string): Promise<Answer> =>
    client.post(`/prompts/${tenant.prompt}/history`, tenant.key, entry({ commit_sha: commit }))

  const whileHeld = <T>(held: string, work: () => Promise<T>): Promise<T> =>
    inTransaction(async (on) => {
      await on`select from prompts where public_id = ${held} for update`
      return work()
    })

  const commitsOf = async (tenant: { prompt: string; key: string }) =>
    (await client.getHistory(tenant.prompt, tenant.key, '?limit=100')).body.data.map(
      (one: { commit_sha: string }) => one.commit_sha,
    )

  test('its other prompts, other organisations and signals go on, and its entries are written when it is free', async () => {
    const [held, other] = await Promise.all([createTenant(settings), createTenant(settings)])
    const { id: secondPrompt } = await operator.one('prompts', 'create', '--org', held.org, '--name', 'second')
    // More than there are connections; few, because they wait for all others, and for four seconds at most.
    const commits = Array.from({ length: 12 }, (_, index) => `c${index}`)
    let waiting: Promise<Answer>[] = []
    await whileHeld(held.prompt, async () => {
      waiting = commits.map((commit) => postHistory(held, commit))
      const others = commits.flatMap((commit) => [
        postHistory(other, commit),
        postHistory({ ...held, prompt: secondPrompt }, commit),
      ])
      const answers = await Promise.all(others)
      expect(answers.map(({ status }) => status)).toEqual(Array(24).fill(201))
      await expectSignalsTaken()
    })
    expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(Array(12).fill(201))
    expect((await commitsOf(held)).sort()).toEqual(commits.sort())
  })

  test('what was answered with a 503 for waiting too long is not written later', async () => {
    const held = await createTenant(settings)
    const answers = await whileHeld(held.prompt, () =>
      Promise.all(Array.from({ length: 30 }, (_, index) => postHistory(held, `c${index}`))),
    )
    expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(503))
    // This one is written after everything that might still be queued.
    expect((await postHistory(held, 'after')).status).toBe(201)
    expect(await commitsOf(held)).toEqual(['after'])
  })
})

test('a signal that was answered with a 503 while its organisation was held is not written later, nor is its retry', async () => {
  const held = await createTenant(settings)
  const keyed = { 'idempotency-key': 'once' }
  const post = () => client.post(`/prompts/${held.prompt}/signals`, held.key, { value: 'positive' }, keyed)
  const answers = await inTransaction(async (on) => {
    await on`select pg_advisory_xact_lock(5167, id::integer) from organisations where public_id = ${held.org}`
    return Promise.all([post(), post(), post()])
  })
  expect(answers.map(({ status }) => status)).toEqual([503, 503, 503])
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
  await inTransaction(async (on) => {
    await on`select from api_keys where public_id = ${held?.id as string} for update`
    waiting = Array.from({ length: 10 }, (_, index) => rename(held, `name ${index}`))
    // Only locks of this database count: other tests run beside this one.
    const waitingLocks = () => on`
        select from pg_locks
        where not granted and pid in (
          select l.pid from pg_locks l join pg_database d on d.oid = l.database where d.datname = current_database()
        )`
    await eventually(async () => (await waitingLocks()).length > 1, true)
    expect((await rename(other, 'other')).status).toBe(200)
    expect((await client.post('/keys', other?.key, { name: 'made' })).status).toBe(201)
  })
  expect((await Promise.all(waiting)).map(({ status }) => status)).toEqual(Array(10).fill(200))
})
