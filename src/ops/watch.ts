import type { OnAvailability } from '../db/availability.ts'
import type { EngineObserver } from '../db/housekeeping.ts'
import { type DeliveryObserver, isGap } from '../github/receipt.ts'
import type { RateLimitObserver } from '../http/rate_limit.ts'
import type { Log } from '../log.ts'
import type { GateObserver } from '../signals/gate.ts'
import type { Dependency, Metrics } from './metrics.ts'

/** Observers that turn what operators must know into a log line and a metric: above all a dependency that is lost. */
export type Watch = {
  availability(dependency: Dependency): OnAvailability
  gate: GateObserver
  rates: RateLimitObserver
  engine: EngineObserver
  deliveries: DeliveryObserver
}

export const createWatch = (log: Log, metrics: Metrics): Watch => ({
  availability: (dependency) => (isUp, reason) => {
    metrics.dependencyChanged(dependency, isUp)
    if (isUp) log.info({ dependency }, 'dependency up')
    else log.warn({ dependency, reason }, 'dependency down')
  },
  gate: {
    decided: metrics.gate.decided,
    breakerChanged(isOpen) {
      metrics.gate.breakerChanged(isOpen)
      if (isOpen) log.warn({ breaker: 'redis', state: 'open' }, 'breaker changed: the limit is kept by the database')
      else log.info({ breaker: 'redis', state: 'closed' }, 'breaker changed: the gate is back')
    },
  },
  deliveries: {
    ended(receipt, org) {
      metrics.deliveries.ended(receipt, org)
      const { outcome, message } = receipt
      if (isGap(outcome)) log.warn({ org, outcome }, `a delivery of GitHub is incomplete: ${message}`)
    },
  },
  rates: {
    limited: metrics.rates.limited,
    breakerChanged(isOpen) {
      metrics.rates.breakerChanged(isOpen)
      if (isOpen)
        log.warn({ breaker: 'rates', state: 'open' }, 'breaker changed: each process counts request rates alone')
      else log.info({ breaker: 'rates', state: 'closed' }, 'breaker changed: request rates are shared again')
    },
  },
  engine: {
    checkpointed: metrics.engine.checkpointed,
    housekeepingFailed(error) {
      metrics.engine.housekeepingFailed(error)
      log.error({ err: error }, 'housekeeping of the embedded database failed; it is tried again')
    },
  },
})
