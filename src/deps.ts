import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import type { DatabaseObserver, Db } from './db/client.ts'
import { openRedis, type Redis } from './db/redis.ts'
import { pruneDeliveries } from './github/prune.ts'
import { createHistoryReader, type HistoryReader } from './history/list.ts'
import { createHistoryRecorder, type HistoryRecorder } from './history/record.ts'
import { createDrain, type Drain } from './http/drain.ts'
import { createLastUsed } from './keys/last_used.ts'
import { createKeyVerifier, type KeyVerifier } from './keys/verify.ts'
import type { Log } from './log.ts'
import { createMetrics, type Metrics } from './ops/metrics.ts'
import { createReadiness, type Readiness } from './ops/readiness.ts'
import { startRounds } from './ops/rounds.ts'
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
  signals: SignalRecorder
  signalBatches: BatchRecorder
  signalReader: SignalReader
  history: HistoryReader
  historyRecorder: HistoryRecorder
  readiness: Readiness
  drain: Drain
  metrics: Metrics
  /** Writes what is under way, then closes everything in the reverse order of opening. */
  close(): Promise<void>
}

const pruneEveryMs = 10 * 60_000
const countEveryMs = 5_000

/** Opens what the configuration names beside the database, and creates the services. */
export function openServices(
  { db, observer }: { db: Db; observer: DatabaseObserver },
  { REDIS_URL, REDIS_PREFIX, REDIS_CA_FILE, PUBLIC_URL }: Config,
  clock: Clock,
  log: Log,
): Services {
  const metrics = createMetrics()
  const watch = createWatch(log, metrics)
  observer.onReach = watch.reach('database')
  observer.engine = watch.engine
  metrics.dependencyChanged('database', true)
  const onReach = watch.reach('redis')
  const redis = REDIS_URL ? openRedis(REDIS_URL, REDIS_PREFIX, { caFile: REDIS_CA_FILE, onReach }) : undefined
  return createServices({ db, redis, clock, log, metrics, watch, baseUrl: PUBLIC_URL })
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
}

export function createServices({
  db,
  redis,
  clock,
  log,
  metrics = createMetrics(),
  watch = createWatch(log, metrics),
  baseUrl = '',
}: Dependencies): Services {
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
  const signals = createSignalRecorder(db, admission, clock, metrics.signals, counter)
  const historyRecorder = createHistoryRecorder(db, clock)
  const lastUsed = createLastUsed(db)
  metrics.watchDatabase(db.load)
  // Any replica may prune: what one deletes, the others no longer find.
  const pruning = startRounds(pruneEveryMs, async () => {
    await pruneOldIdempotencyKeys(db, clock)
    await pruneDeliveries(db, clock)
    await pruneRequests(db, clock)
  })
  const counting = startRounds(countEveryMs, counter.countRecorded)
  return {
    db,
    clock,
    log,
    verifyKey: createKeyVerifier(db, clock, lastUsed),
    findPrompt: prompts.find,
    signals,
    signalBatches: createBatchRecorder(db, admission, metrics.signals, counter),
    signalReader: createSignalReader(db, clock, counter),
    history: createHistoryReader(db, { observer: metrics.history, baseUrl }),
    historyRecorder,
    readiness: createReadiness(db, redis, migrations),
    drain: createDrain(),
    metrics,
    async close() {
      pruning.stop()
      counting.stop()
      await Promise.all([signals.drain(), historyRecorder.drain()])
      await lastUsed.flush()
      await redis?.disconnect()
      await db.close()
    },
  }
}
