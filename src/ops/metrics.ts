// Features report events through the observers below. What an operator must know is logged too.
import type { Db } from '../db/client.ts'
import type { EngineObserver } from '../db/housekeeping.ts'
import { unavailableReasons } from '../errors.ts'
import { type GithubObserver, outcomes as githubOutcomes, isGap } from '../github/schema.ts'
import type { HistoryObserver } from '../history/read.ts'
import type { RequestObserver } from '../http/middleware.ts'
import type { RateLimitObserver } from '../http/rate_limit.ts'
import type { GateDecision } from '../limit/admit.ts'
import type { Log } from '../log.ts'
import type { SignalObserver } from '../signals/record.ts'
import type { SendObserver } from '../webhooks/deliver.ts'
import type { PruningObserver } from './pruning.ts'
import { createRegistry } from './registry.ts'

export type Metrics = ReturnType<typeof createMetrics>

/** Clients may send any method, and every value of a label is kept forever. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
const waitSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 4]
const batchSizes = [1, 2, 5, 10, 20, 50, 100, 200, 500]
const noLabels = () => ({})

export function createMetrics(log: Log) {
  const { measure, gauge, counter, labelledCounter, histogram, text } = createRegistry('prompt_signals_')

  let inFlight = 0
  const durations = histogram(
    'http_request_duration_seconds',
    'Request duration by route, method and status',
    requestSeconds,
  )
  measure('gauge', 'http_requests_in_flight', 'Requests being handled', () => inFlight)
  const countUnavailable = labelledCounter(
    'requests_unavailable_total',
    'Requests answered 503; overload: a queue or a share is full; timeout: a lock, a queue or the database took too long; database: it cannot be reached or written to',
    'reason',
    [...unavailableReasons],
  )
  const rates: RateLimitObserver = {
    limited: labelledCounter('requests_limited_total', 'Requests over a request-rate limit', 'limited_by', [
      'key_rate',
      'address_rate',
      'organisation_rate',
    ]),
  }
  const countOutcome = labelledCounter(
    'signals_total',
    'Signals by outcome; replaced: a vote that changed; replayed: a retry with the same Idempotency-Key; conflict: the key belongs to another signal; missing: a failover lost the prompt',
    'outcome',
    ['recorded', 'replaced', 'refused', 'replayed', 'conflict', 'missing'],
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
    'Decisions before the write, for signals of a month that is at least nine tenths full; refused: the database had just found it full',
    'decision',
    ['passed', 'refused'],
  )
  const history: HistoryObserver = {
    read: labelledCounter('history_pages_total', 'History pages by source', 'source', ['cache', 'database']),
    cached: gauge('history_cache_characters', 'Characters held in the history page cache'),
  }
  const countGithubEvent = labelledCounter(
    'github_events_total',
    'Signed GitHub events by outcome; unlinked_repository, unlinked_files: no prompt is linked; force_push, too_many_commits, files_not_listed: incomplete',
    'outcome',
    githubOutcomes,
  )
  const countAttempt = labelledCounter(
    'webhook_attempts_total',
    'Attempts to deliver an event to an endpoint; pending: failed, and will be retried; failed: the last one failed',
    'status',
    ['delivered', 'pending', 'failed'],
  )
  const setOldestEvent = gauge(
    'webhook_oldest_event_seconds',
    'Age of the oldest event that an enabled endpoint has not received; 0 without one',
  )
  const setDisabledEndpoints = gauge(
    'webhook_endpoints_disabled',
    'Endpoints that were disabled because they answered 410 or failed for five days',
  )
  let expired = 0
  measure('counter', 'signals_expired_total', 'Signals erased by the retention of their organisation', () => expired)
  // The service starts only once the database has answered.
  const up = new Map<string, { isUp: boolean; error: string }>([['database', { isUp: true, error: '' }]])
  measure('gauge', 'dependency_up', '1 while the dependency answers; error: why Redis does not, such as NOPERM', () =>
    [...up].map(([dependency, { isUp, error }]) => [{ dependency, ...(error && { error }) }, Number(isUp)]),
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
      unavailable: countUnavailable,
    } satisfies RequestObserver,
    rates,
    signals: {
      ended: countOutcome,
      batchStarted(signals, waitedMs) {
        batchSize.observe('', signals, noLabels)
        batchWait.observe('', waitedMs / 1_000, noLabels)
      },
    } satisfies SignalObserver,
    gate: countDecision satisfies (decision: GateDecision) => void,
    history,
    github: {
      ended({ outcome, message }, org) {
        countGithubEvent(outcome)
        if (isGap(outcome)) log.warn({ org, outcome }, `GitHub event incomplete: ${message}`)
      },
    } satisfies GithubObserver,
    webhooks: {
      attempted: countAttempt,
      disabled: (endpoint) => log.warn(endpoint, 'webhook endpoint disabled'),
      measured(oldestSeconds, disabled) {
        setOldestEvent(oldestSeconds)
        setDisabledEndpoints(disabled)
      },
    } satisfies SendObserver,
    engine: {
      checkpointed(seconds) {
        countCheckpoint()
        setCheckpointSeconds(seconds)
      },
      housekeepingFailed(err) {
        countHousekeepingFailure()
        log.error({ err }, 'housekeeping of the embedded database failed; will retry')
      },
    } satisfies EngineObserver,
    pruning: {
      skewed: gauge(
        'clock_skew_seconds',
        "By how much this process's clock is ahead of the database's; beyond 300 either way, nothing is pruned",
      ),
      expired(signals) {
        expired += signals
      },
    } satisfies PruningObserver,
    availability:
      (dependency: 'database' | 'redis') =>
      (isUp: boolean, reason: string, error = '') => {
        up.set(dependency, { isUp, error })
        if (isUp) log.info({ dependency }, 'dependency up')
        else log.warn({ dependency, reason }, 'dependency down')
      },
    watchDatabase(load: Db['load']) {
      measure('gauge', 'database_statements_pending', 'Statements waiting for an answer', () => load().pending)
      measure('gauge', 'database_connections_busy', 'Connections with a statement on them', () => {
        const { pending, connections } = load()
        return Math.min(pending, connections)
      })
      measure('gauge', 'database_connections_max', 'Limit on database connections', () => load().connections)
    },
    describeBuild(build: { version: string; commit: string; runtime: string }) {
      measure('gauge', 'build_info', 'Version, commit and runtime of the running build, as labels', () => [[build, 1]])
    },
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    text,
  }
}
