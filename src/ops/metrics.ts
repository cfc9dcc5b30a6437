// Features say what happens through the observers below. It is counted in plain numbers, as it happens with every
// request, and written out in the format of Prometheus when somebody asks.
import type { EngineObserver } from '../db/housekeeping.ts'
import type { HistoryObserver } from '../history/list.ts'
import type { RequestObserver } from '../http/answer.ts'
import { Distribution } from '../lib/distribution.ts'
import type { GateObserver } from '../signals/gate.ts'
import type { SignalObserver } from '../signals/record.ts'
import type { Figure } from './prometheus.ts'

export type Dependency = 'database' | 'redis'

export type Metrics = {
  requests: RequestObserver
  signals: SignalObserver
  gate: GateObserver
  history: HistoryObserver
  engine: EngineObserver
  dependencyChanged(dependency: Dependency, isUp: boolean): void
  /** Reads the load of the database whenever the metrics are asked for. */
  watchDatabase(load: () => { pending: number; connections: number }): void
  describeBuild(build: { version: string; commit: string; bun: string }): void
  contentType: string
  text(): Promise<string>
}

/** Anything may be sent as a method, and every value of a label is kept for ever. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const waitSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 4]
const batchSizes = [1, 2, 5, 10, 20, 50, 100, 200, 500]
const noLabels = () => ({})

export function createMetrics(): Metrics {
  const figures: Figure[] = []
  let written: Promise<() => Promise<string>> | undefined

  function expose(type: Figure['type'], name: string, help: string, samples: Figure['samples']): void {
    figures.push({ name: `prompt_signals_${name}`, help, type, samples })
  }
  /** With every value of its label from the start, so that a rate is right from the first event on. */
  function tally<Value extends string>(name: string, help: string, label: string, values: Value[]) {
    const counts = Object.fromEntries(values.map((value) => [value, 0])) as Record<Value, number>
    expose('counter', name, help, () => values.map((value) => ({ labels: { [label]: value }, value: counts[value] })))
    return counts
  }
  const gauge = (name: string, help: string, read: () => number) =>
    expose('gauge', name, help, () => [{ labels: {}, value: read() }])
  const counter = (name: string, help: string, read: () => number) =>
    expose('counter', name, help, () => [{ labels: {}, value: read() }])
  function distribution(name: string, help: string, bounds: number[]): Distribution {
    const values = new Distribution(bounds)
    expose('histogram', name, help, () => values.samples())
    return values
  }

  let inFlight = 0
  const durations = distribution(
    'http_request_duration_seconds',
    'Requests by route template, method and status, and how long they took',
    requestSeconds,
  )
  gauge('http_requests_in_flight', 'Requests that are not answered yet', () => inFlight)
  const outcomes = tally(
    'signals_total',
    'Signals by outcome; replayed: a retry with the same Idempotency-Key; conflict: the key belongs to another signal',
    'outcome',
    ['recorded', 'refused', 'replayed', 'conflict'],
  )
  const batchSize = distribution('batch_signals', 'Signals per batch insert', batchSizes)
  const batchWait = distribution(
    'batch_wait_seconds',
    'How long the first signal of a batch waited for its insert',
    waitSeconds,
  )
  for (const unlabelled of [batchSize, batchWait]) unlabelled.begin('', {})
  const decisions = tally(
    'gate_decisions_total',
    'Decisions of the gate in Redis; corrected: its count was too high; unreachable: the signal passed uncounted',
    'decision',
    ['passed', 'refused', 'seeded', 'corrected', 'unreachable'],
  )
  let isBreakerOpen = false
  gauge('gate_breaker_open', '1 while Redis is not asked because it failed', () => Number(isBreakerOpen))
  const pages = tally('history_pages_total', 'Pages of history by where they came from', 'source', [
    'cache',
    'database',
  ])
  let cachedCharacters = 0
  gauge('history_cache_characters', 'Size of the pages of history that are kept', () => cachedCharacters)
  const up = new Map<Dependency, boolean>()
  expose('gauge', 'dependency_up', '1 while the dependency answers', () =>
    [...up].map(([dependency, isUp]) => ({ labels: { dependency }, value: Number(isUp) })),
  )
  const engine = { checkpoints: 0, lastSeconds: 0, failures: 0 }
  counter('engine_checkpoints_total', 'Checkpoints of the embedded database', () => engine.checkpoints)
  gauge('engine_checkpoint_duration_seconds', 'How long the last checkpoint took', () => engine.lastSeconds)
  counter('engine_housekeeping_failures_total', 'Rounds of housekeeping that failed', () => engine.failures)

  return {
    requests: {
      began() {
        inFlight += 1
      },
      ended(sent, route, status, seconds) {
        inFlight -= 1
        const method = methods.has(sent) ? sent : 'other'
        durations.add(`${status} ${method} ${route}`, seconds, () => ({ route, method, status }))
      },
    },
    signals: {
      ended(outcome) {
        outcomes[outcome] += 1
      },
      wrote(signals, waitedMs) {
        batchSize.add('', signals, noLabels)
        batchWait.add('', waitedMs / 1_000, noLabels)
      },
    },
    gate: {
      decided(decision) {
        decisions[decision] += 1
        // Nobody else hears of these: they never reach the database.
        if (decision === 'refused') outcomes.refused += 1
      },
      breakerChanged(isOpen) {
        isBreakerOpen = isOpen
      },
    },
    history: {
      read(source) {
        pages[source] += 1
      },
      cached(characters) {
        cachedCharacters = characters
      },
    },
    engine: {
      checkpointed(seconds) {
        engine.checkpoints += 1
        engine.lastSeconds = seconds
      },
      housekeepingFailed() {
        engine.failures += 1
      },
    },
    dependencyChanged: (dependency, isUp) => void up.set(dependency, isUp),
    watchDatabase(load) {
      gauge('database_statements_pending', 'Statements that wait for an answer', () => load().pending)
      gauge('database_connections_busy', 'Connections with a statement on them', () => {
        const { pending, connections } = load()
        return Math.min(pending, connections)
      })
      gauge('database_connections_max', 'Connections there may be', () => load().connections)
    },
    describeBuild(build) {
      expose('gauge', 'build_info', 'The build that runs, as labels', () => [{ labels: build, value: 1 }])
    },
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    async text() {
      // A service that starts has no need of the library, which takes a fifth of the time to start.
      written ??= import('./prometheus.ts').then(({ createExposition }) => createExposition(figures))
      return (await written)()
    },
  }
}
