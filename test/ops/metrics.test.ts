import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createApp } from '../../src/app.ts'
import { createLog } from '../../src/log.ts'
import { createMetrics } from '../../src/ops/metrics.ts'
import { build } from '../../src/platform.ts'
import { entry } from '../service.ts'
import { useOwnService } from '../use.ts'

const service = useOwnService()

type Sample = { name: string; labels: Record<string, string>; value: number }

function readSamples(text: string): Sample[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return lines.map((line) => {
    const [, name = '', labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, text]) => [key, text])
    return { name, labels: Object.fromEntries(pairs), value: Number(value) }
  })
}

async function read(name: string, labels: Record<string, string> = {}): Promise<number> {
  const samples = readSamples((await service.call('GET', '/metrics')).text)
  const found = samples.filter(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )
  return found.reduce((sum, { value }) => sum + value, 0)
}

/** By how much each figure grows while something happens. */
async function growth(figures: [string, Record<string, string>?][], happen: () => Promise<unknown>): Promise<number[]> {
  const before = await Promise.all(figures.map((figure) => read(...figure)))
  await happen()
  const after = await Promise.all(figures.map((figure) => read(...figure)))
  return after.map((value, index) => value - (before[index] as number))
}

const count = 'prompt_signals_http_request_duration_seconds_count'
const signals = (outcome: string): [string, Record<string, string>] => ['prompt_signals_signals_total', { outcome }]

test('needs no key and is in the format of Prometheus', async () => {
  const { status, headers, text } = await service.call('GET', '/metrics')
  expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
  expect(readSamples(text).every(({ name, value }) => name !== '' && !Number.isNaN(value))).toBe(true)
})

test('counts requests by template, method and status, and never by what a caller can choose', async () => {
  const { prompt, key } = await service.createTenant()
  const route = '/api/v1/prompts/:prompt_id/history'
  const grown = await growth(
    [
      [count, { route, method: 'GET', status: '200' }],
      [count, { route, method: 'GET', status: '404' }],
      [count, { route: 'other', method: 'GET', status: '404' }],
      [count, { method: 'other' }],
      [count],
    ],
    async () => {
      await service.getHistory(prompt, key)
      await service.getHistory('pmt_none', key, '?page=9')
      await service.call('GET', `/nothing/${key}`)
      await fetch(`${service.url}/livez`, { method: 'PROPFIND' })
    },
  )
  // The last one also counts the responses with metrics themselves.
  expect(grown.slice(0, 4)).toEqual([1, 1, 1, 1])
  const { text } = await service.call('GET', '/metrics')
  expect(text).not.toContain(prompt)
  expect(text).not.toContain(key)
  expect(text).not.toContain('PROPFIND')
})

test('counts signals recorded, refused, replayed and in conflict, and the decisions of the gate', async () => {
  const { prompt, key } = await service.createTenant(2)
  const path = `/api/v1/prompts/${prompt}/signals`
  const retry = (value: string) =>
    service.call('POST', path, { key, json: { value }, headers: { 'idempotency-key': 'one' } })
  const figures = [
    ...['recorded', 'refused', 'replayed', 'conflict'].map(signals),
    ['prompt_signals_gate_decisions_total'] as [string],
    ['prompt_signals_batch_signals_sum'] as [string],
    ['prompt_signals_batch_wait_seconds_count'] as [string],
  ]
  const grown = await growth(figures, async () => {
    await service.postSignal(prompt, key)
    await retry('positive')
    await retry('positive')
    await retry('negative')
    await service.postSignal(prompt, key)
    await service.postSignal(prompt, key)
  })
  // Those with a key go past the gate.
  expect(grown.slice(0, 5)).toEqual([2, 2, 1, 1, 3])
  // How many of the last two reached the database to be refused depends on whether Redis was in time.
  expect([4, 5, 6]).toContain(grown[5] as number)
  expect(grown[6]).toBe(grown[5] as number)
})

test('counts cached pages of history and those that were read', async () => {
  const { prompt, key } = await service.createTenant()
  await service.addHistory(prompt, [entry()])
  const figures = ['cache', 'database'].map((source): [string, Record<string, string>] => [
    'prompt_signals_history_pages_total',
    { source },
  ])
  const kept: [string] = ['prompt_signals_history_cache_characters']
  const grown = await growth([...figures, kept], async () => {
    await service.getHistory(prompt, key)
    await service.getHistory(prompt, key)
    await service.addHistory(prompt, [entry()])
    await service.getHistory(prompt, key)
  })
  expect(grown.slice(0, 2)).toEqual([1, 2])
  expect(grown[2]).toBeGreaterThan(0)
})

test('knows the load of the database and the state of what the service stands on', async () => {
  expect(await read('prompt_signals_database_connections_max')).toBe(service.services.db.load().connections)
  expect(await read('prompt_signals_database_statements_pending')).toBeGreaterThanOrEqual(0)
  expect(await read('prompt_signals_http_requests_in_flight')).toBe(1)
})

test('says how much memory the process has, as the system sees it', async () => {
  const metrics = createMetrics(createLog('silent'))
  metrics.describeBuild(build)
  const samples = readSamples(await metrics.text())
  const rss = samples.find(({ name }) => name === 'process_resident_memory_bytes')?.value as number
  const [, pages] = (await Bun.file('/proc/self/statm').text()).split(' ')
  expect(Math.abs(rss / (Number(pages) * 4_096) - 1)).toBeLessThan(0.1)
  expect(samples.find(({ name }) => name === 'prompt_signals_build_info')?.labels).toEqual(build)
})

test('every metric that the dashboard queries exists, and every one of ours is on it', async () => {
  const metrics = createMetrics(createLog('silent'))
  metrics.describeBuild(build)
  metrics.watchDatabase(service.services.db.load)
  const exposed = [...(await metrics.text()).matchAll(/^# TYPE (\S+) (\S+)/gm)].flatMap(([, name, type]) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name as string],
  )
  const dashboard = await Bun.file(join(import.meta.dir, '../../deploy/grafana-dashboard.json')).text()
  const queried = new Set(dashboard.match(/\b(prompt_signals|process|nodejs)_\w+/g))
  expect([...queried].filter((name) => !exposed.includes(name))).toEqual([])
  const ours = exposed.filter((name) => name.startsWith('prompt_signals_') && !/_(sum|count|bucket)$/.test(name))
  expect(ours.filter((name) => !queried.has(name))).toEqual([])
})

test('are not on the main port when they have an address of their own', async () => {
  const app = createApp(service.services, { servesMetrics: false })
  expect((await app.fetch(new Request('http://localhost/metrics'))).status).toBe(404)
})
