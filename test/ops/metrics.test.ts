import { expect, spyOn, test } from 'bun:test'
import { join } from 'node:path'
import type { Db } from '../../src/db/client.ts'
import { createDrain } from '../../src/http/drain.ts'
import { createLog } from '../../src/log.ts'
import { createMetrics } from '../../src/ops/metrics.ts'
import { createReadiness } from '../../src/ops/readiness.ts'
import { build } from '../../src/platform.ts'
import { eventually } from '../program.ts'
import { entry } from '../service.ts'
import { useOwnService, useTenant } from '../use.ts'

const service = useOwnService()

type Figure = [string, Record<string, string>?]
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
  const samples = readSamples(service.services.metrics.text())
  const found = samples.filter(
    (sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
  )
  return found.reduce((sum, { value }) => sum + value, 0)
}

async function growth<Name extends string>(
  figures: Record<Name, Figure>,
  happen: () => Promise<unknown>,
): Promise<Record<Name, number>> {
  const readAll = () => Promise.all(Object.values<Figure>(figures).map((figure) => read(...figure)))
  const before = await readAll()
  await happen()
  const after = await readAll()
  const grown = Object.keys(figures).map((name, index) => [name, (after[index] as number) - (before[index] as number)])
  return Object.fromEntries(grown)
}

test('needs no key and is in the format of Prometheus, with cumulative buckets', async () => {
  const { status, headers, text } = await service.call('GET', '/metrics')
  expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
  const samples = readSamples(text)
  expect(samples.filter(({ name, value }) => name === '' || Number.isNaN(value))).toEqual([])
  const buckets = samples.filter(({ name }) => name === 'prompt_signals_batch_signals_bucket')
  expect(buckets.map(({ labels }) => labels.le)).toEqual(['1', '2', '5', '10', '20', '50', '100', '200', '500', '+Inf'])
  const values = buckets.map(({ value }) => value)
  expect(values).toEqual(values.toSorted((a, b) => a - b))
  expect(values.at(-1)).toBe(await read('prompt_signals_batch_signals_count'))
})

test('callers in the same second share one text, because each rendering keeps other requests waiting', async () => {
  const render = spyOn(service.services.metrics, 'text')
  try {
    for (let call = 0; call < 50; call += 1) await service.call('GET', '/metrics')
    expect(render.mock.calls.length).toBeLessThan(25)
  } finally {
    render.mockRestore()
  }
})

test('counts requests by template, method and status, and never by what a caller can choose', async () => {
  const { prompt, key } = await service.createTenant()
  const count = 'prompt_signals_http_request_duration_seconds_count'
  const route = '/api/v1/prompts/:prompt_id/history'
  const grown = await growth(
    {
      found: [count, { route, method: 'GET', status: '200' }],
      notFound: [count, { route, method: 'GET', status: '404' }],
      noRoute: [count, { route: 'other', method: 'GET', status: '404' }],
      otherMethod: [count, { method: 'other' }],
    },
    async () => {
      await service.getHistory(prompt, key)
      await service.getHistory('pmt_none', key, '?page=9')
      await service.call('GET', `/nothing/${key}`)
      await fetch(`${service.url}/livez`, { method: 'PROPFIND' })
    },
  )
  expect(grown).toEqual({ found: 1, notFound: 1, noRoute: 1, otherMethod: 1 })
  const { text } = await service.call('GET', '/metrics')
  for (const chosen of [prompt, key, 'PROPFIND']) expect(text).not.toContain(chosen)
})

test('counts signals by outcome, their batches and the decisions of the gate', async () => {
  const { prompt, key } = await service.createTenant(2)
  const retry = (value: string) =>
    service.post(`/prompts/${prompt}/signals`, key, { value }, { 'idempotency-key': 'one' })
  const outcome = (outcome: string): Figure => ['prompt_signals_signals_total', { outcome }]
  const { batched, batches, ...counted } = await growth(
    {
      recorded: outcome('recorded'),
      refused: outcome('refused'),
      replayed: outcome('replayed'),
      conflict: outcome('conflict'),
      decisions: ['prompt_signals_gate_decisions_total'],
      batched: ['prompt_signals_batch_signals_sum'],
      batches: ['prompt_signals_batch_wait_seconds_count'],
    },
    async () => {
      await service.postSignal(prompt, key)
      for (const value of ['positive', 'positive', 'negative']) await retry(value)
      await service.postSignal(prompt, key)
      await service.postSignal(prompt, key)
    },
  )
  // Nothing is decided for signals with a key, nor before the first write.
  expect(counted).toEqual({ recorded: 2, refused: 2, replayed: 1, conflict: 1, decisions: 2 })
  // How many of the last two reached the database to be refused depends on whether Redis was in time.
  expect([4, 5, 6]).toContain(batched)
  expect(batches).toBe(batched)
})

test('counts cached pages of history and those that were read', async () => {
  const { prompt, key } = await service.createTenant()
  await service.addHistory(prompt, [entry()])
  const { kept, ...pages } = await growth(
    {
      cache: ['prompt_signals_history_pages_total', { source: 'cache' }],
      database: ['prompt_signals_history_pages_total', { source: 'database' }],
      kept: ['prompt_signals_history_cache_characters'],
    },
    async () => {
      await service.getHistory(prompt, key)
      await service.getHistory(prompt, key)
      await service.addHistory(prompt, [entry()])
      await service.getHistory(prompt, key)
    },
  )
  expect(pages).toEqual({ cache: 1, database: 2 })
  expect(kept).toBeGreaterThan(0)
})

test('knows the load of the database and the state of what the service stands on', async () => {
  expect(await read('prompt_signals_database_connections_max')).toBe(service.services.db.load().connections)
  expect(await read('prompt_signals_database_statements_pending')).toBeGreaterThanOrEqual(0)
  // No request is in flight: the figures are read without one.
  expect(await read('prompt_signals_http_requests_in_flight')).toBe(0)
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

/** A database that counts its queries, and returns a result when the test says so. */
function fakeDatabase(isEmbedded = false) {
  let queries = 0
  const answers: ((rows: object[]) => void)[] = []
  const sql = () => {
    queries += 1
    return new Promise<object[]>((resolve) => answers.push(resolve))
  }
  return {
    db: { sql, requireWritable: async () => {}, isEmbedded } as unknown as Db,
    queries: () => queries,
    answer() {
      for (const resolve of answers.splice(0)) resolve([])
    },
  }
}

test('probes at the same time share one look at the database, and so do those of the next second', async () => {
  const { db, queries, answer } = fakeDatabase()
  const readiness = createReadiness(db, undefined, [], createDrain())
  const probes = Promise.all([readiness.check(), readiness.check(), readiness.check()])
  answer()
  const ready = { ready: true, database: 'up', redis: 'unused' }
  expect(await probes).toEqual([ready, ready, ready] as never)
  expect(await readiness.check()).toEqual(ready as never)
  // The schema and the look-up of keys.
  expect(queries()).toBe(2)
})

test('a database that does not answer is down within half a second', async () => {
  const { db } = fakeDatabase()
  const report = createReadiness(db, undefined, [], createDrain()).check()
  // Of two timers the shorter one is the first, however late a busy machine lets them both be.
  const later = Bun.sleep(1_000).then(() => 'later')
  const down = { ready: false, database: 'down', reason: 'unreachable', redis: 'unused' } as const
  expect(await Promise.race([report, later])).toEqual(down)
})

test('an embedded engine that is busy for a second is not down', async () => {
  const { db, answer } = fakeDatabase(true)
  const report = createReadiness(db, undefined, [], createDrain()).check()
  await Bun.sleep(1_000)
  answer()
  expect(await report).toEqual({ ready: true, database: 'up', redis: 'unused' } as never)
})

test('is not ready from the moment of the stop, even for a probe that was under way', async () => {
  const { db, answer } = fakeDatabase()
  const drain = createDrain()
  const readiness = createReadiness(db, undefined, [], drain)
  const underWay = readiness.check()
  const drained = drain.run(0)
  answer()
  const stopping = { ready: false, stopping: true } as const
  expect([await underWay, await readiness.check()]).toEqual([stopping, stopping])
  await drained
})
const tenant = useTenant(service)

test('is not ready while the look-up that every request needs cannot run', async () => {
  const { sql } = service.services.db
  const readiness = async () => {
    const { status, body } = await service.call('GET', '/readyz')
    return [status, body.reason]
  }
  await eventually(readiness, [200, undefined])
  await sql`alter table api_keys rename to api_keys_away`
  try {
    await eventually(readiness, [503, 'failing'])
    await eventually(async () => (await service.getHistory(tenant.prompt, tenant.key)).status, 500)
  } finally {
    await sql`alter table api_keys_away rename to api_keys`
  }
  await eventually(readiness, [200, undefined])
})
