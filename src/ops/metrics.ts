// The one place that knows Prometheus. Features say what happens through the observers below and know nothing of it.
// What happens with every request is counted in plain numbers, which the library reads when it is asked: its own
// counting took a fifth of the time of the simplest request.
import { Counter, collectDefaultMetrics, Gauge, Histogram, type Metric, Registry } from 'prom-client'
import type { EngineObserver } from '../db/housekeeping.ts'
import type { RequestObserver } from '../http/answer.ts'
import { Durations } from '../lib/durations.ts'
import type { GateObserver } from '../signals/gate.ts'
import type { SignalObserver } from '../signals/record.ts'

export type Dependency = 'database' | 'redis'

export type Metrics = {
  requests: RequestObserver
  signals: SignalObserver
  gate: GateObserver
  engine: EngineObserver
  dependencyChanged(dependency: Dependency, isUp: boolean): void
  /** Reads the load of the database whenever the metrics are asked for. */
  watchDatabase(load: () => { pending: number; connections: number }): void
  /** Adds the figures of the process itself and of this build. */
  describeProcess(build: { version: string; commit: string; bun: string }): void
  contentType: string
  text(): Promise<string>
}

const prefix = 'prompt_signals_'
/** Anything may be sent as a method, and every value of a label is kept for ever. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const waitSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 4]
const batchSizes = [1, 2, 5, 10, 20, 50, 100, 200, 500]
/** Of Node's engine: on this one they are zero, or say the version of something that is not here. */
const meaningless = /^nodejs_(heap_space|active_|version_info|gc_)/

export function createMetrics(): Metrics {
  const register = new Registry()
  const named = (name: string, help: string) => ({ name: prefix + name, help, registers: [register] })
  const counter = (name: string, help: string, ...labelNames: string[]) =>
    new Counter({ ...named(name, help), labelNames })
  /** With every value of its label from the start, so that a rate is right from the first event on. */
  function tally<Value extends string>(name: string, help: string, label: string, values: Value[]) {
    const counts = Object.fromEntries(values.map((value) => [value, 0])) as Record<Value, number>
    new Counter({
      ...named(name, help),
      labelNames: [label],
      collect() {
        this.reset()
        for (const value of values) this.inc({ [label]: value }, counts[value])
      },
    })
    return counts
  }
  const watched = (name: string, help: string, read: () => number) =>
    new Gauge({
      ...named(name, help),
      collect() {
        this.set(read())
      },
    })
  const gauge = (name: string, help: string, ...labelNames: string[]) => new Gauge({ ...named(name, help), labelNames })
  const histogram = (name: string, help: string, buckets: number[]) => new Histogram({ ...named(name, help), buckets })
  function expose(name: string, help: string, durations: Durations): void {
    const metric = { name: prefix + name, help, type: 'histogram', aggregator: 'sum' }
    const readValues = () =>
      durations.samples().map(({ figure, ...sample }) => ({ ...sample, metricName: `${metric.name}_${figure}` }))
    const get = async () => ({ ...metric, values: readValues() })
    // The library's types know only its own classes; all it does with them here is to call `get`.
    register.registerMetric({ ...metric, get } as unknown as Metric)
  }

  const durations = new Durations(requestSeconds)
  let inFlight = 0
  expose(
    'http_request_duration_seconds',
    'Requests by route template, method and status, and how long they took',
    durations,
  )
  watched('http_requests_in_flight', 'Requests that are not answered yet', () => inFlight)
  const outcomes = tally(
    'signals_total',
    'Signals by what became of them; repeated: answered as before; differs: the key is that of another signal',
    'outcome',
    ['recorded', 'refused', 'repeated', 'differs'],
  )
  const batchSize = histogram('batch_signals', 'Signals that went down in one write', batchSizes)
  const batchWait = histogram('batch_wait_seconds', 'How long the first signal of a write waited for it', waitSeconds)
  const decisions = tally(
    'gate_decisions_total',
    'What the gate in Redis did with a signal; corrected: it was too high; unreachable: it let it pass unseen',
    'decision',
    ['passed', 'refused', 'seeded', 'corrected', 'unreachable'],
  )
  const breakerOpen = gauge('gate_breaker_open', '1 while Redis is left out because it failed')
  const up = gauge('dependency_up', '1 while the dependency answers', 'dependency')
  const checkpoints = counter('engine_checkpoints_total', 'Checkpoints of the embedded database')
  const checkpointSeconds = gauge('engine_checkpoint_duration_seconds', 'How long the last checkpoint took')
  const failedRounds = counter('engine_housekeeping_failures_total', 'Rounds of housekeeping that failed')

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
        batchSize.observe(signals)
        batchWait.observe(waitedMs / 1_000)
      },
    },
    gate: {
      decided(decision) {
        decisions[decision] += 1
        // Nobody else hears of these: they never reach the database.
        if (decision === 'refused') outcomes.refused += 1
      },
      breakerChanged: (isOpen) => breakerOpen.set(isOpen ? 1 : 0),
    },
    engine: {
      checkpointed(seconds) {
        checkpoints.inc()
        checkpointSeconds.set(seconds)
      },
      housekeepingFailed: () => failedRounds.inc(),
    },
    dependencyChanged: (dependency, isUp) => up.set({ dependency }, isUp ? 1 : 0),
    watchDatabase(load) {
      watched('database_statements_pending', 'Statements that wait for an answer', () => load().pending)
      watched('database_connections_busy', 'Connections with a statement on them', () => {
        const { pending, connections } = load()
        return Math.min(pending, connections)
      })
      watched('database_connections_max', 'Connections there may be', () => load().connections)
    },
    describeProcess(build) {
      collectDefaultMetrics({ register })
      for (const { name } of register.getMetricsAsArray()) if (meaningless.test(name)) register.removeSingleMetric(name)
      gauge('build_info', 'The build that runs, as labels', ...Object.keys(build)).set(build, 1)
    },
    contentType: register.contentType,
    text: () => register.metrics(),
  }
}
