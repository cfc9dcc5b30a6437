import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import { analyzeGrownTables } from './db/analyze.ts'
import type { DatabaseObserver, Db } from './db/client.ts'
import { whyUnavailable } from './db/errors.ts'
import { openRedis, type Redis } from './db/redis.ts'
import { unavailable } from './errors.ts'
import { createHistoryReader } from './history/read.ts'
import { createAddressFinder } from './http/client_address.ts'
import { createDrain } from './http/drain.ts'
import { createRateLimiter, limitOrganisations, type Rate } from './http/rate_limit.ts'
import { createChangeList } from './impact/changes.ts'
import { createOverview } from './impact/overview.ts'
import { createKeyVerifier } from './keys/verify.ts'
import { createSemaphore } from './lib/concurrency.ts'
import { runPeriodically } from './lib/periodic.ts'
import { createAdmission } from './limit/admit.ts'
import type { Log } from './log.ts'
import { createMetrics, type Metrics } from './ops/metrics.ts'
import { startPruning } from './ops/pruning.ts'
import { createReadiness } from './ops/readiness.ts'
import { build, migrations, resolveName } from './platform.ts'
import { createPromptFinder } from './prompts/find.ts'
import { createBatchRecorder } from './signals/batch.ts'
import { createSignalRecorder } from './signals/record.ts'
import { createSignalRollup } from './stats/rollup.ts'
import {
  announceThresholds,
  announceThresholdsEveryMs,
  checkVerdictsEveryMs,
  createVerdictCheck,
} from './webhooks/announce.ts'
import { startDeliveries } from './webhooks/deliver.ts'
import { createSender } from './webhooks/send.ts'

export type Services = ReturnType<typeof createServices>

/** Requests that outlast the deadline of others, exports and tests of endpoints, do not wait for each other. */
const longRequests = { permits: 20, permitsPerTenant: 2, maxWaiting: 0 }
const tooManyLong = () =>
  unavailable('overload', 'Too many exports or tests are running: two for this organisation, or 20 in total.', 10)

/** An organisation's tests of endpoints. */
const endpointTests = { requests: 10, windowSeconds: 60 }

const rollUpEveryMs = 5_000
const analyzeEveryMs = 1_000

/** Opens everything but the database, and creates the services. */
export function openServices(
  { db, observer }: { db: Db; observer: DatabaseObserver },
  config: Config,
  clock: Clock,
  log: Log,
): Services {
  const { REDIS_URL, REDIS_PREFIX, REDIS_CA_FILE } = config
  const metrics = createMetrics(log)
  observer.onAvailability = metrics.availability('database')
  observer.engine = metrics.engine
  const onAvailability = metrics.availability('redis')
  const redis = REDIS_URL ? openRedis(REDIS_URL, REDIS_PREFIX, { caFile: REDIS_CA_FILE, onAvailability }) : undefined
  return createServices({ db, redis, clock, log, metrics }, config)
}

type Dependencies = {
  db: Db
  redis?: Redis | undefined
  clock: Clock
  log: Log
  metrics?: Metrics
  /** Whether work runs in the background: not for a command. */
  isServing?: boolean
}

export function createServices(
  { db, redis, clock, log, metrics = createMetrics(log), isServing = true }: Dependencies,
  config: Partial<Config> = {},
) {
  const { PUBLIC_URL: baseUrl = '', TRUSTED_PROXIES, RATE_LIMIT_PER_KEY, RATE_LIMIT_PER_ADDRESS } = config
  const { WEBHOOK_ALLOWED_HOSTS: allowedHosts } = config
  const limitRate = (name: string, rate: Rate | undefined) => rate && createRateLimiter(rate, { clock, name, redis })
  const testRate = createRateLimiter(endpointTests, { clock, name: 'endpoint_tests', redis })
  const admission = createAdmission(db, redis, metrics.gate)
  const prompts = createPromptFinder(db)
  const keys = createKeyVerifier(db, clock)
  let lostConnections = 0
  // The connection may have been lost in a failover to a server that lacks the last changes.
  db.onConnectionLost(() => {
    lostConnections += 1
    prompts.forgetAll()
    keys.forget()
  })
  const rollup = createSignalRollup(db)
  const limitLong = createSemaphore({ ...longRequests, rejectWith: tooManyLong })
  const recording = { db, admission, observe: metrics.signals, rollup, onMissing: prompts.forget }
  const signalRecorder = createSignalRecorder(recording, clock)
  const drain = createDrain()
  const isStopping = () => drain.isDraining
  metrics.watchDatabase(db.load)
  const sendOnce = createSender({
    version: build.version,
    publicUrl: baseUrl,
    allowedHosts,
    resolve: resolveName,
  })

  /** Work in the background. Returns the function that stops it. */
  function startBackground() {
    // An outage has its own log line.
    const logFailure = (message: string) => (err: unknown) => {
      if (!whyUnavailable(err)) log.error({ err }, message)
    }
    const onVerdictFailure = logFailure('checking verdicts failed; will retry')
    const checkVerdicts = createVerdictCheck({ db, clock, rollup }, { isStopping, onFailure: onVerdictFailure })
    const onFailure = logFailure('delivering webhooks failed; will retry')
    const deliveries = startDeliveries({ db, clock, sendOnce, observer: metrics.webhooks, isStopping, onFailure })
    const timers = [
      ...startPruning({ db, clock, log, observer: metrics.pruning, isStopping }),
      runPeriodically(rollUpEveryMs, rollup.rollUpPending),
      runPeriodically(analyzeEveryMs, () => analyzeGrownTables(db)),
      runPeriodically(checkVerdictsEveryMs, checkVerdicts, onVerdictFailure),
      runPeriodically(
        announceThresholdsEveryMs,
        () => announceThresholds(db, clock),
        logFailure('announcing usage thresholds failed; will retry'),
      ),
    ]
    return async () => {
      for (const timer of timers) timer.stop()
      await deliveries.stop()
    }
  }

  const stopBackground = isServing ? startBackground() : undefined
  return {
    db,
    clock,
    log,
    whyUnavailable,
    version: build.version,
    verifyKey: keys.verify,
    lostConnections: () => lostConnections,
    findPrompt: prompts.find,
    signalRecorder,
    recordBatch: createBatchRecorder(recording),
    rollup,
    readOverview: createOverview({ db, clock, rollup }),
    readChangeList: createChangeList({ db, rollup }),
    limitLong,
    limitTests: limitOrganisations(testRate, metrics.rates),
    historyReader: createHistoryReader(db, { observer: metrics.history, baseUrl }),
    githubObserver: metrics.github,
    sendOnce,
    allowedHosts,
    readiness: createReadiness(db, redis, migrations, drain),
    drain,
    metrics,
    baseUrl,
    rateLimits: {
      perKey: limitRate('key', RATE_LIMIT_PER_KEY),
      perAddress: limitRate('address', RATE_LIMIT_PER_ADDRESS),
      findAddress: createAddressFinder(TRUSTED_PROXIES),
    },
    /** Writes pending signals, then closes everything in the reverse order of opening. */
    async close() {
      await stopBackground?.()
      await signalRecorder.drain()
      await keys.flushLastUsed()
      await redis?.disconnect()
      await db.close()
    },
  }
}
