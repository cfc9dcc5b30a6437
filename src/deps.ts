import type { Clock } from './clock.ts'
import type { Config } from './config.ts'
import type { DatabaseObserver, Db } from './db/client.ts'
import { openRedis, type Redis } from './db/redis.ts'
import { pruneDeliveries } from './github/prune.ts'
import { createHistoryReader, type HistoryReader } from './history/list.ts'
import { createKeyVerifier, type KeyVerifier } from './keys/verify.ts'
import type { Log } from './log.ts'
import { createMetrics, type Metrics } from './ops/metrics.ts'
import { createReadiness, type Readiness } from './ops/readiness.ts'
import { startRounds } from './ops/rounds.ts'
import { createWatch } from './ops/watch.ts'
import { migrations } from './platform.ts'
import { createPromptFinder, type PromptFinder } from './prompts/find.ts'
import { createAdmission } from './signals/admit.ts'
import { createGate, noGate } from './signals/gate.ts'
import { pruneOldIdempotencyKeys } from './signals/prune.ts'
import { createSignalRecorder, type SignalRecorder } from './signals/record.ts'

/** What the routes stand on. */
export type Services = {
  db: Db
  clock: Clock
  log: Log
  verifyKey: KeyVerifier
  findPrompt: PromptFinder
  signals: SignalRecorder
  history: HistoryReader
  readiness: Readiness
  metrics: Metrics
  /** Writes what is under way, then closes everything in the reverse order of opening. */
  close(): Promise<void>
}

const pruneEveryMs = 10 * 60_000

/** Opens what the configuration names beside the database, and puts everything together. */
export function openServices(
  { db, observer }: { db: Db; observer: DatabaseObserver },
  { REDIS_URL, REDIS_PREFIX, REDIS_CA_FILE }: Config,
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
  return createServices(db, redis, clock, log, metrics)
}

export function createServices(
  db: Db,
  redis: Redis | undefined,
  clock: Clock,
  log: Log,
  metrics: Metrics = createMetrics(),
): Services {
  const watch = createWatch(log, metrics)
  const admission = createAdmission(db, redis ? createGate(redis, watch.gate) : noGate, watch.gate)
  // Without a gate nothing is refused that Postgres has not refused itself.
  if (redis) {
    const onChange = (organisationId: string) => admission.forgetRefusals(Number(organisationId))
    db.listen('organisations', onChange, () => admission.forgetRefusals())
  }
  const signals = createSignalRecorder(db, admission, clock, metrics.signals)
  metrics.watchDatabase(db.load)
  // Any replica may prune: what one deletes, the others no longer find.
  const pruning = startRounds(pruneEveryMs, async () => {
    await pruneOldIdempotencyKeys(db, clock)
    await pruneDeliveries(db, clock)
  })
  return {
    db,
    clock,
    log,
    verifyKey: createKeyVerifier(db, clock),
    findPrompt: createPromptFinder(db),
    signals,
    history: createHistoryReader(db, metrics.history),
    readiness: createReadiness(db, redis, migrations),
    metrics,
    async close() {
      pruning.stop()
      await signals.drain()
      await redis?.disconnect()
      await db.close()
    },
  }
}
