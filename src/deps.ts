import type { BlockList } from 'node:net'
import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import type { DatabaseObserver, Db } from './db/client.ts'
import { openRedis, type Redis } from './db/redis.ts'
import { pruneDeliveries } from './github/prune.ts'
import type { DeliveryObserver } from './github/receipt.ts'
import { createHistoryReader, type HistoryReader } from './history/list.ts'
import { createHistoryRecorder, type HistoryRecorder } from './history/record.ts'
import { type AddressFinder, createAddressFinder } from './http/client_address.ts'
import { createDrain, type Drain } from './http/drain.ts'
import { createRateLimiter, type Rate, type RateLimits } from './http/rate_limit.ts'
import type { ImpactReader } from './impact/report.ts'
import { createFailedKeys } from './keys/failed_keys.ts'
import { createLastUsed } from './keys/last_used.ts'
import { createKeyVerifier, type KeyVerifier } from './keys/verify.ts'
import type { Log } from './log.ts'
import { createMetrics, type Metrics } from './ops/metrics.ts'
import { runPeriodically } from './ops/periodic.ts'
import { createReadiness, type Readiness } from './ops/readiness.ts'
import { createWatch, type Watch } from './ops/watch.ts'
import { migrations } from './platform.ts'
import { createPromptFinder, type PromptFinder } from './prompts/find.ts'
import { pruneRequests } from './requests/replay.ts'
import { createAdmission } from './signals/admit.ts'
import { type BatchRecorder, createBatchRecorder } from './signals/batch.ts'
import { createSignalCounter } from './signals/count.ts'
import { createGate, noGate } from './signals/gate.ts'
import { pruneOldIdempotencyKeys } from './signals/prune.ts'
import { createSignalReader, type SignalReader } from './signals/read.ts'
import { createSignalRecorder, type SignalRecorder } from './signals/record.ts'

/** What the routes depend on. */
export type Services = {
  db: Db
  clock: Clock
  log: Log
  verifyKey: KeyVerifier
  findPrompt: PromptFinder['find']
  findCachedPrompt: PromptFinder['findCached']
  signals: SignalRecorder
  signalBatches: BatchRecorder
  signalReader: SignalReader
  history: HistoryReader
  historyRecorder: HistoryRecorder
  deliveries: DeliveryObserver
  /** Loaded when it is first asked for, which keeps the start short. */
  loadImpact(): Promise<ImpactReader>
  readiness: Readiness
  drain: Drain
  metrics: Metrics
  /** The address that callers reach the service at; links are relative without it. */
  baseUrl: string
  findAddress: AddressFinder
  rateLimits: RateLimits
  /** Writes what is under way, then closes everything in the reverse order of opening. */
  close(): Promise<void>
}

const pruneEveryMs = 10 * 60_000
const countEveryMs = 5_000

/** Opens what the configuration names beside the database, and creates the services. */
export function openServices(
  { db, observer }: { db: Db; observer: DatabaseObserver },
  config: Config,
  clock: Clock,
  log: Log,
): Services {
  const { REDIS_URL, REDIS_PREFIX, REDIS_CA_FILE } = config
  const metrics = createMetrics()
  const watch = createWatch(log, metrics)
  observer.onAvailability = watch.availability('database')
  observer.engine = watch.engine
  metrics.dependencyChanged('database', true)
  const onAvailability = watch.availability('redis')
  const redis = REDIS_URL ? openRedis(REDIS_URL, REDIS_PREFIX, { caFile: REDIS_CA_FILE, onAvailability }) : undefined
  return createServices({
    db,
    redis,
    clock,
    log,
    metrics,
    watch,
    baseUrl: config.PUBLIC_URL,
    trustedProxies: config.TRUSTED_PROXIES,
    perKey: config.RATE_LIMIT_PER_KEY,
    perAddress: config.RATE_LIMIT_PER_ADDRESS,
  })
}

type Dependencies = {
  db: Db
  redis?: Redis | undefined
  clock: Clock
  log: Log
  metrics?: Metrics
  watch?: Watch
  /** The address that callers reach the service at; links are relative without it. */
  baseUrl?: string | undefined
  /** Whose X-Forwarded-For is believed; nobody's without it. */
  trustedProxies?: BlockList | undefined
  /** How many requests a key and an address may send; any number without it. */
  perKey?: Rate | undefined
  perAddress?: Rate | undefined
}

export function createServices({
  db,
  redis,
  clock,
  log,
  metrics = createMetrics(),
  watch = createWatch(log, metrics),
  baseUrl = '',
  trustedProxies,
  perKey,
  perAddress,
}: Dependencies): Services {
  const limitRate = (name: string, rate: Rate | undefined) =>
    rate && createRateLimiter(rate, { clock, name, redis, observe: watch.rates })
  const admission = createAdmission(db, redis ? createGate(redis, watch.gate) : noGate, watch.gate)
  const prompts = createPromptFinder(db)
  db.listen(
    'organisations',
    (organisationId) => admission.forgetRefusals(Number(organisationId)),
    // The connection may have been lost in a failover, to a server that has not received the last changes.
    () => {
      admission.forgetRefusals()
      prompts.forget()
    },
  )
  const counter = createSignalCounter(db)
  const signalReader = createSignalReader(db, clock, counter)
  let impact: ImpactReader | undefined
  const signals = createSignalRecorder(db, admission, clock, metrics.signals, counter)
  const historyRecorder = createHistoryRecorder(db, clock)
  const lastUsed = createLastUsed(db)
  const drain = createDrain()
  metrics.watchDatabase(db.load)
  // Any replica may prune: what one deletes, the others no longer find. Each runs by itself, so that one that fails
  // does not keep the others from running.
  const prunings = [
    () => pruneOldIdempotencyKeys(db, clock),
    () => pruneDeliveries(db, clock),
    () => pruneRequests(db, clock),
    async () => {
      const { applyRetentions } = await import('./signals/erase.ts')
      await applyRetentions(db, clock, () => drain.isDraining)
    },
  ].map((prune) =>
    runPeriodically(pruneEveryMs, prune, (err) =>
      log.error({ err }, 'what is past its time was not all deleted; it is tried again'),
    ),
  )
  const counting = runPeriodically(countEveryMs, counter.countRecorded)
  return {
    db,
    clock,
    log,
    verifyKey: createKeyVerifier(db, clock, lastUsed, createFailedKeys(metrics.failedKeys)),
    findPrompt: prompts.find,
    findCachedPrompt: prompts.findCached,
    signals,
    signalBatches: createBatchRecorder(db, admission, metrics.signals, counter),
    signalReader,
    history: createHistoryReader(db, { observer: metrics.history, baseUrl }),
    historyRecorder,
    deliveries: watch.deliveries,
    async loadImpact() {
      impact ??= (await import('./impact/report.ts')).createImpactReader(db, clock, counter, signalReader.limited)
      return impact
    },
    readiness: createReadiness(db, redis, migrations),
    drain,
    metrics,
    baseUrl,
    findAddress: createAddressFinder(trustedProxies),
    rateLimits: { perKey: limitRate('key', perKey), perAddress: limitRate('address', perAddress) },
    async close() {
      for (const pruning of prunings) pruning.stop()
      counting.stop()
      await Promise.all([signals.drain(), historyRecorder.drain()])
      await lastUsed.flush()
      await redis?.disconnect()
      await db.close()
    },
  }
}
