import { expect, test } from 'bun:test'
import { pruneIdempotencyKeys } from '../../src/idempotency/replay.ts'
import { invalid } from '../client.ts'
import { useAdmin, useOwnService, useTenant } from '../use.ts'

const service = useOwnService()
const tenant = useTenant(service)
const admin = useAdmin(service, tenant)

const post = (key: string, json: object, path = '/keys', headers = {}) =>
  service.post(path, admin.key, json, { 'idempotency-key': key, ...headers })

test('of many concurrent retries one creates a key, whose text is in the first answer only', async () => {
  const before = (await service.get('/keys?limit=100', admin.key)).body.data.length
  const answers = await Promise.all(Array.from({ length: 8 }, () => post('retry', { name: 'once' })))
  const [first, ...others] = answers.filter(({ headers }) => !headers.has('idempotent-replayed'))
  expect(others).toHaveLength(0)
  const replayed = answers.filter((answer) => answer !== first)
  for (const { status, headers, body } of replayed) {
    expect(status).toBe(201)
    expect(headers.get('idempotent-replayed')).toBe('true')
    expect(body).toEqual({ data: { ...first?.body.data, key: null } })
  }
  expect((await service.get('/keys?limit=100', admin.key)).body.data).toHaveLength(before + 1)
  for (const other of [
    await post('retry', { name: 'another' }),
    await post('retry', {}, `/keys/${first?.body.data.id}/rotate`),
    await post('retry', { name: 'once' }, '/prompts'),
  ]) {
    expect(other).toMatchObject(invalid('Idempotency-Key'))
  }
})

test('an Idempotency-Key belongs to one route: the same body there for another key is no retry', async () => {
  const ids = await Promise.all(['one', 'two'].map(async (name) => (await post(name, { name })).body.data.id))
  const rotate = (id: string) => post('rotation', { overlap_seconds: 60 }, `/keys/${id}/rotate`)
  expect((await rotate(ids[0])).status).toBe(201)
  expect(await rotate(ids[1])).toMatchObject(invalid('Idempotency-Key'))
  expect((await service.get(`/keys/${ids[1]}`, admin.key)).body.data.replaced_by).toBeNull()
})

test('a retry that uses another name of the service is still a retry', async () => {
  const first = await post('other-host', { name: 'hosts' })
  for (const host of ['replica-2:3000', 'signals.example.com', '[bad']) {
    const again = await post('other-host', { name: 'hosts' }, '/keys', { host })
    expect(again.status).toBe(201)
    expect(again.body.data).toEqual({ ...first.body.data, key: null })
  }
})

test('a rejected request does not use up its Idempotency-Key', async () => {
  expect((await post('rejected', { name: 'x', expires_at: '2020-01-01T00:00:00Z' })).status).toBe(422)
  expect((await post('rejected', { name: 'x' })).status).toBe(201)
})

test.each([
  ['prompts', () => '/prompts', { name: 'once' }],
  ['signals', () => `/prompts/${tenant.prompt}/signals`, { value: 'positive' }],
])('the Idempotency-Keys of %s are forgotten after a day, and not before', async (_, path, json) => {
  const isReplayed = async () => {
    const { status, headers } = await post('day', json, path())
    expect(status).toBe(201)
    return headers.has('idempotent-replayed')
  }
  const prune = () => pruneIdempotencyKeys(service.services.db, service.clock.now())
  service.clock.set('2026-11-10T12:00:00.000Z')
  expect(await isReplayed()).toBe(false)
  service.clock.set('2026-11-11T12:00:00.000Z')
  await prune()
  expect(await isReplayed()).toBe(true)
  service.clock.set('2026-11-11T12:00:00.001Z')
  await prune()
  expect(await isReplayed()).toBe(false)
})
