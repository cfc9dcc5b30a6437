// How a rate wanders is told by the past of a change, not by which other changes are shown beside it.
import { expect, test } from 'bun:test'
import { readChanges } from '../../src/impact/read.ts'
import { type Timeline, windowsOf } from '../../src/impact/timeline.ts'
import { requirePrompt } from '../../src/prompts/find.ts'
import { useNewTenant, useService } from '../use.ts'
import { addSignals, deployed, onDays, signals } from './history.ts'

const service = useService()
const tenant = useNewTenant(service)

test('a change has the same impact on any page', async () => {
  service.clock.set('2026-11-15T12:00:00.000Z')
  // The first change ended more than 90 days before the last one went live.
  const times = ['2026-05-01T00:00:00.000Z', '2026-05-21T00:00:00.000Z', '2026-10-01T00:00:00.000Z']
  await service.addHistory(
    tenant.prompt,
    times.map((time, index) => deployed(String(index).repeat(40), time)),
  )
  const steady = signals(70, 30, { at: '2026-06-01T12:00:00.000Z' })
  await addSignals(service, tenant.prompt, [
    ...[1, 3, 5, 7, 9].flatMap((day) => [
      ...signals(90, 10, { at: `2026-05-0${day}T12:00:00.000Z` }),
      ...signals(10, 90, { at: `2026-05-1${day}T12:00:00.000Z` }),
    ]),
    ...onDays(10, steady),
    ...signals(70, 30, { at: '2026-10-01T12:00:00.000Z' }),
  ])
  const read = async (limit: number) =>
    (await service.get(`/prompts/${tenant.prompt}/impact?limit=${limit}`, tenant.key)).body.data[0]
  expect(await read(25)).toEqual(await read(1))
  expect((await read(25)).wander.days).toBe(10)
})

test('two changes compared the other way round have the same wander and the mirrored interval', async () => {
  service.clock.set('2026-11-15T12:00:00.000Z')
  const times = ['2026-10-01T00:00:00.000Z', '2026-10-11T00:00:00.000Z', '2026-10-21T00:00:00.000Z']
  await service.addHistory(
    tenant.prompt,
    times.map((time, index) => deployed(String(index).repeat(40), time)),
  )
  await addSignals(
    service,
    tenant.prompt,
    times.flatMap((time, index) =>
      [0, 2, 4, 6].flatMap((day) =>
        signals(60 + 5 * index + day, 40, { at: new Date(Date.parse(time) + (day + 0.5) * 86_400_000).toISOString() }),
      ),
    ),
  )
  const { data } = (await service.getHistory(tenant.prompt, tenant.key)).body
  const [third, second] = data.map(({ id }: { id: number }) => id)
  const read = async (base: number, head: number) =>
    (await service.get(`/prompts/${tenant.prompt}/impact?base=${base}&head=${head}`, tenant.key)).body.data[0]
  const [forward, back] = [await read(second, third), await read(third, second)]
  expect(back.wander).toEqual(forward.wander)
  expect([back.difference.low, back.difference.high]).toEqual([-forward.difference.high, -forward.difference.low])
})

test('no signals are counted where there is no change to compare', async () => {
  const { sql } = service.services.db
  const { id, organisationId } = await requirePrompt(sql, tenant.prompt)
  await service.addHistory(tenant.prompt, [deployed('0'.repeat(40), '2026-11-01T00:00:00.000Z')])
  let statements = 0
  const counted = (text: TemplateStringsArray, ...values: unknown[]) => {
    statements += 1
    return sql(text, ...values)
  }
  expect(await readChanges(counted as typeof sql, organisationId, [id], () => [])).toEqual(new Map())
  expect(statements).toBe(1)
})

test('a page of changes far apart does not search a long history for each', () => {
  let looks = 0
  const timeline: Timeline = Array.from({ length: 10_000 }, (_, n) => [n, n, `commit-${n}`])
  const counted = new Proxy(timeline, {
    get(target, name) {
      looks += 1
      return Reflect.get(target, name)
    },
  })
  const windows = windowsOf(
    counted,
    Array.from({ length: 25 }, (_, n) => n * 400),
  )
  expect(windows).toHaveLength(25 + 24 * 10)
  expect(looks).toBeLessThan(10 * timeline.length)
})
