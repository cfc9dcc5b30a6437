import { expect, spyOn, test } from 'bun:test'
import { createServices } from '../../src/deps.ts'
import { scopes } from '../../src/http/caller.ts'
import { createKey } from '../../src/keys/manage.ts'
import { createLog } from '../../src/log.ts'
import { useOwnService } from '../use.ts'

const service = useOwnService()

test('a service forgets the idempotency keys of the administration after a day, and not before', async () => {
  const { db, clock } = service.services
  const { org } = await service.createTenant()
  const { key } = await createKey(db, clock, { org, name: 'admin', scopes: [...scopes], expiresAt: null })
  const isReplayed = async () => {
    const headers = { 'idempotency-key': 'day' }
    const answer = await service.call('POST', '/api/v1/prompts', { key, headers, json: { name: 'once' } })
    expect(answer.status).toBe(201)
    return answer.headers.has('idempotent-replayed')
  }
  const intervals = spyOn(globalThis, 'setInterval')
  createServices({ db, clock, log: createLog('silent') })
  const rounds = intervals.mock.calls.filter(([, everyMs]) => everyMs === 600_000) as unknown as [() => Promise<void>][]
  const prune = () => Promise.all(rounds.map(([round]) => round()))
  intervals.mockRestore()

  service.clock.set('2026-11-10T12:00:00.000Z')
  expect(await isReplayed()).toBe(false)
  service.clock.set('2026-11-11T12:00:00.000Z')
  await prune()
  expect(await isReplayed()).toBe(true)
  service.clock.set('2026-11-11T12:00:00.001Z')
  await prune()
  expect(await isReplayed()).toBe(false)
})
