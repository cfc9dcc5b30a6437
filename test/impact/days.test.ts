import { beforeAll, expect, test } from 'bun:test'
import { useService, useTenant } from '../use.ts'
import { addSignals, deployed, onDays, rollUp, signals } from './history.ts'

const service = useService()
const tenant = useTenant(service)
const [first, second] = ['1111111aaaa', '2222222bbbb']

let ids: number[]

beforeAll(async () => {
  service.clock.set('2026-11-15T12:00:00.000Z')
  await service.addHistory(tenant.prompt, [
    deployed(first, '2026-11-01T12:00:00.000Z'),
    deployed(second, '2026-11-04T12:00:00.000Z'),
  ])
  await addSignals(service, tenant.prompt, [
    ...signals(70, 30, { at: '2026-11-01T13:00:00.000Z' }),
    ...onDays(6, signals(70, 30, { at: '2026-11-02T13:00:00.000Z', commit: first })),
    ...signals(40, 10, { at: '2026-11-04T13:00:00.000Z' }),
    ...signals(90, 10, { at: '2026-11-06T13:00:00.000Z', commit: second }),
  ])
  await rollUp(service, tenant.prompt, 250)
  ids = (await service.getHistory(tenant.prompt, tenant.key)).body.data.map(({ id }: { id: number }) => id)
})

const read = (id: unknown, query = '') => service.get(`/prompts/${tenant.prompt}/impact/${id}/days${query}`, tenant.key)

test('the difference of a change is shown after each of its days, and ends where its impact is', async () => {
  const { status, body } = await read(ids[0])
  expect(status).toBe(200)
  const { change, base, days, health } = body.data
  expect([change.commit_sha, base.commit_sha, base.skipped]).toEqual([second, first, 0])
  expect(days.map(({ date, positive, negative }: Record<string, unknown>) => [date, positive, negative])).toEqual([
    ['2026-11-04', 40, 10],
    ['2026-11-06', 90, 10],
  ])
  const [impact] = (await service.get(`/prompts/${tenant.prompt}/impact?limit=1`, tenant.key)).body.data
  expect(days[1]).toMatchObject({ difference: impact.difference, verdict: impact.verdict })
  expect(days[0].difference.value).toBe(0.1)
  expect(days[0].difference.high - days[0].difference.low).toBeGreaterThan(
    impact.difference.high - impact.difference.low,
  )
  expect(health).toEqual({
    base: { days: 7, signals: 200, named: 0.5 },
    change: { days: 2, signals: 150, named: 0.6667 },
  })
  expect((await read(ids[0], '?margin=0.9')).body.data.days[1].verdict).toBe('same')
})

test('the first change has days, and nothing to compare them with', async () => {
  const { base, days, health } = (await read(ids[1])).body.data
  expect([base, health.base]).toEqual([null, null])
  expect(days[0]).toMatchObject({ positive: 70, difference: null, verdict: null })
})

test('a change after one without signals is undecided, as in its impact', async () => {
  const { prompt, key } = await service.createTenant()
  const times = ['2026-11-01T12:00:00.000Z', '2026-11-01T12:00:00.001Z']
  await service.addHistory(prompt, [deployed(first, times[0] as string), deployed(second, times[1] as string)])
  await addSignals(service, prompt, signals(1, 0, { at: '2026-11-02T13:00:00.000Z' }))
  const [{ change, verdict }] = (await service.get(`/prompts/${prompt}/impact`, key)).body.data
  const { days } = (await service.get(`/prompts/${prompt}/impact/${change.id}/days`, key)).body.data
  expect([verdict, days[0].verdict, days[0].difference]).toEqual(['undecided', 'undecided', null])
})

test.each([999_999, 'x', 0])('%p, which is no change of the prompt, is not found', async (id) => {
  expect((await read(id)).status).toBe(404)
})
