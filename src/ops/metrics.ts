// Features report events through the observers below. They are counted in plain numbers, because this happens for every
// request, and rendered in the text format of Prometheus at each scrape. What operators must know is logged too.
import type { Db } from '../db/client.ts'
import type { EngineObserver } from '../db/housekeeping.ts'
import { type DeliveryObserver, outcomes as deliveryOutcomes, isGap } from '../github/delivery_result.ts'
import type { HistoryObserver } from '../history/read.ts'
import type { RequestObserver } from '../http/middleware.ts'
import type { RateLimitObserver } from '../http/rate_limit.ts'
import type { FailedKeyObserver } from '../keys/failed_keys.ts'
import type { GateObserver } from '../limit/gate.ts'
import type { Log } from '../log.ts'
import type { SignalObserver } from '../signals/record.ts'
import { Histogram } from './histogram.ts'
import type { Metric } from './prometheus.ts'

export type Metrics = ReturnType<typeof createMetrics>

/** Callers may send anything as a method, and every value of a label is kept for ever. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const waitSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 4]
const batchSizes = [1, 2, 5, 10, 20, 50, 100, 200, 500]
const noLabels = () => ({})

export function createMetrics(log: Log) {
  const metrics: Metric[] = []
  let exposition: Promise<() => Promise<string>> | undefined

  function expose(type: Metric['type'], name: string, help: string, samples: Metric['samples']): void {
    metrics.push({ name: `prompt_signals_${name}`, help, type, samples })
  }
  const measure = (type: 'gauge' | 'counter', name: string, help: string, read: () => number) =>
    expose(type, name, help, () => [{ labels: {}, value: read() }])

  /** Returns what sets the gauge. */
  function gauge(name: string, help: string): (value: number) => void {
    let current = 0
    measure('gauge', name, help, () => current)
    return (value) => {
      current = value
    }
  }
  /** Returns what counts one up. */
  function counter(name: string, help: string): () => void {
    let count = 0
    measure('counter', name, help, () => count)
    return () => {
      count += 1
    }
  }
  /** The same with every value of a label from the start, so that a rate is right from the first event on. */
  function labelledCounter<Value extends string>(name: string, help: string, label: string, values: Value[]) {
    const counts = Object.fromEntries(values.map((value) => [value, 0])) as Record<Value, number>
    expose('counter', name, help, () => values.map((value) => ({ labels: { [label]: value }, value: counts[value] })))
    return (value: Value) => {
      counts[value] += 1
    }
  }
  function histogram(name: string, help: string, bounds: number[]): Histogram {
    const values = new Histogram(bounds)
    expose('histogram', name, help, () => values.samples())
    return values
  }
  /** Returns the observer of a circuit breaker, which is logged under this name. */
  function breaker(metric: string, help: string, name: string, effects: { open: string; closed: string }) {
    const set = gauge(metric, help)
    return (isOpen: boolean) => {
      set(Number(isOpen))
      const state = isOpen ? 'open' : 'closed'
      log[isOpen ? 'warn' : 'info']({ breaker: name, state }, `breaker changed: ${effects[state]}`)
    }
  }

  let inFlight = 0
  const durations = histogram(
    'http_request_duration_seconds',
    'Request duration by route, method and status',
    requestSeconds,
  )
  measure('gauge', 'http_requests_in_flight', 'Requests being handled', () => inFlight)
  const countLimited = labelledCounter('requests_limited_total', 'Requests over a request-rate limit', 'limited_by', [
    'key_rate',
    'address_rate',
  ])
  const rateBreakerChanged = breaker(
    'rate_breaker_open',
    '1 while each process counts request rates alone after failures of Redis',
    'rates',
    { open: 'each process counts request rates alone', closed: 'request rates are shared again' },
  )
  const countFailedKey = labelledCounter(
    'failed_keys_total',
    'Requests with an API key that is not valid; slowed: the address kept failing and was answered later',
    'answered',
    ['at_once', 'slowed'],
  )
  const countOutcome = labelledCounter(
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
  const countDecision = labelledCounter(
    'gate_decisions_total',
    'Decisions of the limit gate in Redis; corrected: its count was too high; unreachable: passed unchecked',
    'decision',
    ['passed', 'refused', 'seeded', 'corrected', 'unreachable'],
  )
  const gateBreakerChanged = breaker('gate_breaker_open', '1 while Redis is bypassed after failures', 'redis', {
    open: 'the limit is kept by the database',
    closed: 'the gate is back',
  })
  const countPage = labelledCounter('history_pages_total', 'History pages by source', 'source', ['cache', 'database'])
  const setCachedCharacters = gauge('history_cache_characters', 'Characters held in the history page cache')
  const countDelivery = labelledCounter(
    'github_deliveries_total',
    'Signed deliveries of GitHub by outcome; unlinked_repository, unlinked_files: of no linked prompt; force_push, too_many_commits, files_not_listed: incomplete',
    'outcome',
    deliveryOutcomes,
  )
  // Without a database there would be no service yet.
  const up = new Map<string, boolean>([['database', true]])
  expose('gauge', 'dependency_up', '1 while the dependency answers', () =>
    [...up].map(([dependency, isUp]) => ({ labels: { dependency }, value: Number(isUp) })),
  )
  const countCheckpoint = counter('engine_checkpoints_total', 'Checkpoints of the embedded database')
  const setCheckpointSeconds = gauge(
    'engine_checkpoint_duration_seconds',
    'Duration of the last checkpoint of the embedded database',
  )
  const countHousekeepingFailure = counter(
    'engine_housekeeping_failures_total',
    'Failed housekeeping runs of the embedded database',
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
    } satisfies RequestObserver,
    rates: { limited: countLimited, breakerChanged: rateBreakerChanged } satisfies RateLimitObserver,
    failedKeys: { failed: countFailedKey } satisfies FailedKeyObserver,
    signals: {
      ended: countOutcome,
      batchStarted(signals, waitedMs) {
        batchSize.observe('', signals, noLabels)
        batchWait.observe('', waitedMs / 1_000, noLabels)
      },
    } satisfies SignalObserver,
    gate: {
      decided(decision) {
        countDecision(decision)
        // The recorder does not report these, as they never reach the database.
        if (decision === 'refused') countOutcome('refused')
      },
      breakerChanged: gateBreakerChanged,
    } satisfies GateObserver,
    history: { read: countPage, cached: setCachedCharacters } satisfies HistoryObserver,
    deliveries: {
      ended({ outcome, message }, org) {
        countDelivery(outcome)
        if (isGap(outcome)) log.warn({ org, outcome }, `a delivery of GitHub is incomplete: ${message}`)
      },
    } satisfies DeliveryObserver,
    engine: {
      checkpointed(seconds) {
        countCheckpoint()
        setCheckpointSeconds(seconds)
      },
      housekeepingFailed(err) {
        countHousekeepingFailure()
        log.error({ err }, 'housekeeping of the embedded database failed; it is tried again')
      },
    } satisfies EngineObserver,
    availability: (dependency: 'database' | 'redis') => (isUp: boolean, reason: string) => {
      up.set(dependency, isUp)
      if (isUp) log.info({ dependency }, 'dependency up')
      else log.warn({ dependency, reason }, 'dependency down')
    },
    /** Reads the load of the database at each scrape. */
    watchDatabase(load: Db['load']) {
      measure('gauge', 'database_statements_pending', 'Statements waiting for an answer', () => load().pending)
      measure('gauge', 'database_connections_busy', 'Connections with a statement on them', () => {
        const { pending, connections } = load()
        return Math.min(pending, connections)
      })
      measure('gauge', 'database_connections_max', 'Limit on database connections', () => load().connections)
    },
    describeBuild(build: { version: string; commit: string; bun: string }) {
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
