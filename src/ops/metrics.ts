// Features report events through the observers below. They are counted in plain numbers, because this happens for every
// request, and rendered in the text format of Prometheus at each scrape.
import type { EngineObserver } from '../db/housekeeping.ts'
import { type DeliveryObserver, outcomes as deliveryOutcomes } from '../github/receipt.ts'
import type { HistoryObserver } from '../history/list.ts'
import type { RequestObserver } from '../http/answer.ts'
import type { RateLimitObserver } from '../http/rate_limit.ts'
import type { FailedKeyObserver } from '../keys/failed_keys.ts'
import type { GateObserver } from '../signals/gate.ts'
import type { SignalObserver } from '../signals/record.ts'
import { Histogram } from './histogram.ts'
import type { Metric } from './prometheus.ts'

export type Dependency = 'database' | 'redis'

export type Metrics = {
  requests: RequestObserver
  rates: RateLimitObserver
  failedKeys: FailedKeyObserver
  signals: SignalObserver
  gate: GateObserver
  history: HistoryObserver
  deliveries: DeliveryObserver
  engine: EngineObserver
  dependencyChanged(dependency: Dependency, isUp: boolean): void
  /** Reads the load of the database at each scrape. */
  watchDatabase(load: () => { pending: number; connections: number }): void
  describeBuild(build: { version: string; commit: string; bun: string }): void
  contentType: string
  text(): Promise<string>
}

/** Callers may send anything as a method, and every value of a label is kept for ever. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const waitSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 4]
const batchSizes = [1, 2, 5, 10, 20, 50, 100, 200, 500]
const noLabels = () => ({})

export function createMetrics(): Metrics {
  const metrics: Metric[] = []
  let exposition: Promise<() => Promise<string>> | undefined

  function expose(type: Metric['type'], name: string, help: string, samples: Metric['samples']): void {
    metrics.push({ name: `prompt_signals_${name}`, help, type, samples })
  }
  /** A counter with every value of its label from the start, so that a rate is right from the first event on. */
  function labelledCounter<Value extends string>(name: string, help: string, label: string, values: Value[]) {
    const counts = Object.fromEntries(values.map((value) => [value, 0])) as Record<Value, number>
    expose('counter', name, help, () => values.map((value) => ({ labels: { [label]: value }, value: counts[value] })))
    return counts
  }
  const gauge = (name: string, help: string, read: () => number) =>
    expose('gauge', name, help, () => [{ labels: {}, value: read() }])
  const counter = (name: string, help: string, read: () => number) =>
    expose('counter', name, help, () => [{ labels: {}, value: read() }])
  function histogram(name: string, help: string, bounds: number[]): Histogram {
    const values = new Histogram(bounds)
    expose('histogram', name, help, () => values.samples())
    return values
  }

  let inFlight = 0
  const durations = histogram(
    'http_request_duration_seconds',
    'Request duration by route, method and status',
    requestSeconds,
  )
  gauge('http_requests_in_flight', 'Requests being handled', () => inFlight)
  const exceeded = labelledCounter('requests_limited_total', 'Requests over a request-rate limit', 'limited_by', [
    'key_rate',
    'address_rate',
  ])
  let isRateBreakerOpen = false
  gauge('rate_breaker_open', '1 while each process counts request rates alone after failures of Redis', () =>
    Number(isRateBreakerOpen),
  )
  const failedKeys = labelledCounter(
    'failed_keys_total',
    'Requests with an API key that is not valid; slowed: the address kept failing and was answered later',
    'answered',
    ['at_once', 'slowed'],
  )
  const outcomes = labelledCounter(
    'signals_total',
    'Signals by outcome; replayed: a retry with the same Idempotency-Key; conflict: the key belongs to another signal',
    'outcome',
    ['recorded', 'refused', 'replayed', 'conflict'],
  )
  const batchSize = histogram('batch_signals', 'Signals per batch insert', batchSizes)
  const batchWait = histogram(
    'batch_wait_seconds',
    'Time the first signal of a batch waited for the insert',
    waitSeconds,
  )
  for (const unlabelled of [batchSize, batchWait]) unlabelled.addSeries('', {})
  const decisions = labelledCounter(
    'gate_decisions_total',
    'Decisions of the limit gate in Redis; corrected: its count was too high; unreachable: passed unchecked',
    'decision',
    ['passed', 'refused', 'seeded', 'corrected', 'unreachable'],
  )
  let isBreakerOpen = false
  gauge('gate_breaker_open', '1 while Redis is bypassed after failures', () => Number(isBreakerOpen))
  const pages = labelledCounter('history_pages_total', 'History pages by source', 'source', ['cache', 'database'])
  let cachedCharacters = 0
  gauge('history_cache_characters', 'Characters held in the history page cache', () => cachedCharacters)
  const received = labelledCounter(
    'github_deliveries_total',
    'Signed deliveries of GitHub by outcome; unlinked: of no linked prompt; force_push, too_many_commits, files_not_listed: incomplete',
    'outcome',
    deliveryOutcomes,
  )
  const up = new Map<Dependency, boolean>()
  expose('gauge', 'dependency_up', '1 while the dependency answers', () =>
    [...up].map(([dependency, isUp]) => ({ labels: { dependency }, value: Number(isUp) })),
  )
  const engine = { checkpoints: 0, lastSeconds: 0, failures: 0 }
  counter('engine_checkpoints_total', 'Checkpoints of the embedded database', () => engine.checkpoints)
  gauge(
    'engine_checkpoint_duration_seconds',
    'Duration of the last checkpoint of the embedded database',
    () => engine.lastSeconds,
  )
  counter(
    'engine_housekeeping_failures_total',
    'Failed housekeeping runs of the embedded database',
    () => engine.failures,
  )

  return {
    requests: {
      began() {
        inFlight += 1
      },
      ended(sent, route, status, seconds) {
        inFlight -= 1
        const method = methods.has(sent) ? sent : 'other'
        durations.observe(`${status} ${method} ${route}`, seconds, () => ({ route, method, status }))
      },
    },
    rates: {
      limited(by) {
        exceeded[by] += 1
      },
      breakerChanged(isOpen) {
        isRateBreakerOpen = isOpen
      },
    },
    failedKeys: {
      failed(answered) {
        failedKeys[answered] += 1
      },
    },
    signals: {
      ended(outcome) {
        outcomes[outcome] += 1
      },
      wrote(signals, waitedMs) {
        batchSize.observe('', signals, noLabels)
        batchWait.observe('', waitedMs / 1_000, noLabels)
      },
    },
    gate: {
      decided(decision) {
        decisions[decision] += 1
        // The recorder does not report these, as they never reach the database.
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
    deliveries: {
      ended({ outcome }) {
        received[outcome] += 1
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
      gauge('database_statements_pending', 'Statements waiting for an answer', () => load().pending)
      gauge('database_connections_busy', 'Connections with a statement on them', () => {
        const { pending, connections } = load()
        return Math.min(pending, connections)
      })
      gauge('database_connections_max', 'Limit on database connections', () => load().connections)
    },
    describeBuild(build) {
      expose('gauge', 'build_info', 'The running build, as labels', () => [{ labels: build, value: 1 }])
    },
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    async text() {
      // The library is loaded with the first scrape, because it would take a fifth of the time to start.
      exposition ??= import('./prometheus.ts').then(({ createExposition }) => createExposition(metrics))
      return (await exposition)()
    },
  }
}
