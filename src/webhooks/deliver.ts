import { recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { runPeriodically } from '../lib/periodic.ts'
import { dayMs, hourMs, minuteMs } from '../lib/times.ts'
import type { Reply, SendOnce } from './send.ts'
import {
  disableEndpoint,
  endLease,
  type Lease,
  leaseDeliveries,
  type Outcome,
  recordAttempt,
  selectBacklog,
} from './store_events.ts'

export type SendObserver = {
  /** Called with what became of a delivery after an attempt; pending: it is retried. */
  attempted(status: Outcome['status']): void
  disabled(endpoint: { org: string; endpoint: string; reason: string }): void
  /** Called with the age of the oldest undelivered event, and the number of endpoints that the service disabled. */
  measured(oldestSeconds: number, disabled: number): void
}

type Options = {
  db: Db
  clock: Clock
  sendOnce: SendOnce
  observer: SendObserver
  isStopping(): boolean
  /** Called when deliveries cannot be read or written. */
  onFailure(error: unknown): void
}

const pollEveryMs = 500
const measureEveryMs = 10_000
/** Longer than an attempt takes. When a replica is lost, others send its deliveries after this time. */
const leaseMs = 20_000
/** How long a stop waits for attempts in flight. */
const stopMs = 1_000
/** How many endpoints are sent to at the same time. Those that fail have their own places: many of them may hang. */
const [places, placesOfFailing] = [150, 50]

/**
 * Delivers events, beside other replicas. An endpoint has one attempt in flight per replica, so one that hangs delays only
 * its own events. No connection to the database is held during an attempt.
 */
export function startDeliveries({ db, clock, sendOnce, observer, isStopping, onFailure }: Options) {
  const aborting = new AbortController()
  let isStopped = false
  const loops = [startLoop(false, places), startLoop(true, placesOfFailing)]
  const timer = runPeriodically(measureEveryMs, measure, onFailure)

  /** Sends to endpoints that fail, or to those that do not. */
  function startLoop(isFailing: boolean, places: number) {
    const attempts = new Map<number, Promise<void>>()
    let { promise: woken, resolve: wake } = Promise.withResolvers<void>()

    async function sendDue(): Promise<void> {
      const limit = places - attempts.size
      if (limit === 0 || isStopped || isStopping()) return
      const leases = await leaseDeliveries(db.sql, { isFailing, busyEndpoints: [...attempts.keys()], limit, leaseMs })
      for (const lease of leases) {
        const attempt = deliver(lease)
          .catch(onFailure)
          .finally(() => {
            attempts.delete(lease.endpointId)
            wake()
          })
        attempts.set(lease.endpointId, attempt)
      }
    }

    async function run(): Promise<void> {
      while (!isStopped) {
        const timer = setTimeout(wake, pollEveryMs).unref()
        await woken
        clearTimeout(timer)
        // From here on, an attempt that ends makes room for the next turn.
        ;({ promise: woken, resolve: wake } = Promise.withResolvers<void>())
        await sendDue().catch(onFailure)
      }
      await Promise.all(attempts.values())
    }

    return { ended: run(), wake: () => wake() }
  }

  async function deliver(lease: Lease): Promise<void> {
    const { receiver, event, sentAt } = lease
    const reply = await sendOnce(receiver, event, sentAt, aborting.signal).catch(() => undefined)
    if (!reply || !(await record(lease, reply))) await endLease(db.sql, lease)
  }

  /** Returns false if the reply is not the last word on this delivery. */
  async function record(lease: Lease, reply: Reply): Promise<boolean> {
    const { org, organisationId, endpoint } = lease
    const outcome = decideOutcome(reply, lease, lease.sentAt, Math.random())
    const { status, disabledReason: reason } = outcome
    observer.attempted(status)
    if (!reason) return recordAttempt(db.sql, lease, reply, outcome)
    const event = { organisationId, action: 'endpoint.disabled', subject: endpoint, details: { reason } } as const
    const [isDisabled, isRecorded] = await db.transaction(async (sql) => {
      const isDone = await disableEndpoint(sql, lease, reason)
      if (isDone) await recordAudit(sql, clock, { name: 'delivery' }, event)
      return [isDone, await recordAttempt(sql, lease, reply, outcome)]
    })
    if (isDisabled) observer.disabled({ org, endpoint, reason })
    return isRecorded
  }

  async function measure(): Promise<void> {
    const { oldest, disabled } = await selectBacklog(db.sql)
    observer.measured(oldest ? (clock.now().getTime() - oldest.getTime()) / 1_000 : 0, disabled)
  }

  return {
    /** Waits for attempts in flight, then aborts them. They are made again, with the same id. */
    async stop(): Promise<void> {
      isStopped = true
      timer.stop()
      const abort = setTimeout(() => aborting.abort(), stopMs)
      for (const loop of loops) loop.wake()
      await Promise.all(loops.map(({ ended }) => ended))
      clearTimeout(abort)
    },
  }
}

/** `attempts` were made before this one; `failingSince` is the first failure since the last success. */
type State = { attempts: number; failingSince: Date | null }

/** How long after the attempt before it each attempt follows. The first one follows the event. */
const stepsMs = [0, 5_000, 5 * minuteMs, 30 * minuteMs, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * hourMs)]
const jitter = 0.2
const disabledAfterMs = 5 * dayMs

/** 2xx is a success. A redirect is a failure, because nothing checks where it leads. */
export const isDelivered = ({ code }: Reply): boolean => code !== null && code >= 200 && code < 300

/** Decides what follows from an attempt. Pure: the caller gives the time, and a random number from 0 to below 1. */
export function decideOutcome(reply: Reply, { attempts, failingSince }: State, now: Date, random: number): Outcome {
  if (isDelivered(reply)) return { status: 'delivered', retryMs: null, disabledReason: null }
  if (reply.code === 410) return { status: 'failed', retryMs: null, disabledReason: 'gone' }
  // An endpoint that failed long ago and was not called since gets a second attempt.
  const isFailing = attempts > 0 && failingSince !== null && now.getTime() - failingSince.getTime() >= disabledAfterMs
  const retryMs = findWait(attempts + 1, parseRetryAfter(reply.retryAfter, now), random)
  return { status: retryMs === null ? 'failed' : 'pending', retryMs, disabledReason: isFailing ? 'failing' : null }
}

/** How long to wait after `made` attempts; null when these were all. */
function findWait(made: number, retryAfterMs: number, random: number): number | null {
  const stepMs = stepsMs[made]
  if (stepMs === undefined) return null
  const jitteredMs = stepMs * (1 + jitter * (2 * random - 1))
  return Math.round(Math.max(jitteredMs, Math.min(retryAfterMs, 2 * stepMs)))
}

/** In milliseconds from now; 0 if the header is absent or cannot be read. */
function parseRetryAfter(header: string | undefined, now: Date): number {
  if (header === undefined) return 0
  const ms = /^\d+$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now.getTime()
  return Number.isNaN(ms) ? 0 : ms
}
