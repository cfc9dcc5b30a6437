import { recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { runPeriodically } from '../lib/periodic.ts'
import { decideOutcome, type Outcome } from './outcome.ts'
import type { SendOnce } from './send.ts'
import { choosePlaces, findExcluded } from './share.ts'
import {
  type Claim,
  claimDeliveries,
  disableEndpoint,
  recordAttempt,
  releaseEndpoint,
  selectBacklog,
  selectDue,
} from './store_deliveries.ts'

export type SendObserver = {
  /** Called with what became of a delivery after an attempt; pending: it is retried. */
  attempted(status: Outcome['status']): void
  /** Called when an endpoint was disabled. */
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

const lookEveryMs = 500
const measureEveryMs = 10_000
/** Longer than an attempt takes. When a replica is lost, others take its deliveries up after this time. */
const claimMs = 20_000
/** How long a stop waits for attempts in flight. */
const stopMs = 1_000
/** Between two messages to a chat. */
const slackPauseMs = 1_000

/** Delivers events, beside other replicas. No connection is held during an attempt. */
export function startDeliveries({ db, clock, sendOnce, observer, isStopping, onFailure }: Options) {
  const inFlight = new Map<Claim, Promise<void>>()
  const aborting = new AbortController()
  let isStopped = false
  let looking: Promise<void> | undefined

  async function lookForDue(): Promise<void> {
    const excluded = findExcluded([...inFlight.keys()])
    if (!excluded || isStopped || isStopping()) return
    const due = await selectDue(db.sql, excluded)
    const chosen = choosePlaces(due, [...inFlight.keys()])
    if (chosen.length > 0) for (const claim of await claimDeliveries(db.sql, chosen, claimMs)) start(claim)
  }

  const look = (): Promise<void> => {
    looking ??= lookForDue().finally(() => {
      looking = undefined
    })
    return looking
  }

  function start(claim: Claim): void {
    const attempt = deliver(claim)
      .catch(onFailure)
      .finally(() => inFlight.delete(claim))
    inFlight.set(claim, attempt)
    attempt.then(look).catch(onFailure)
  }

  async function deliver(claim: Claim): Promise<void> {
    const { receiver, claimedAt } = claim
    const reply = await sendOnce(receiver, claim.event, claimedAt, aborting.signal).catch(() => undefined)
    if (!reply) return releaseEndpoint(db.sql, claim)
    const outcome = decideOutcome(reply, claim, claimedAt, Math.random())
    const pauseMs = receiver.kind === 'slack' ? slackPauseMs : 0
    const attempt = { claim, reply, outcome, pauseMs }
    const { disabledReason: reason } = outcome
    if (reason) {
      const { org, organisationId, endpoint } = claim
      const event = { organisationId, action: 'endpoint.disabled', subject: endpoint, details: { reason } } as const
      const isDisabled = await db.transaction(async (sql) => {
        const isDone = await disableEndpoint(sql, claim, reason)
        if (isDone) await recordAudit(sql, clock, { name: 'delivery' }, event)
        await recordAttempt(sql, attempt)
        return isDone
      })
      if (isDisabled) observer.disabled({ org, endpoint, reason })
    } else await recordAttempt(db.sql, attempt)
    observer.attempted(outcome.status)
  }

  async function measure(): Promise<void> {
    const { oldest, disabled } = await selectBacklog(db.sql)
    observer.measured(oldest ? (clock.now().getTime() - oldest.getTime()) / 1_000 : 0, disabled)
  }

  const timers = [runPeriodically(lookEveryMs, look, onFailure), runPeriodically(measureEveryMs, measure, onFailure)]

  return {
    /** Waits for attempts in flight, then aborts them. They are made again, with the same id. */
    async stop(): Promise<void> {
      isStopped = true
      for (const timer of timers) timer.stop()
      await looking?.catch(() => {})
      const abort = setTimeout(() => aborting.abort(), stopMs)
      await Promise.all(inFlight.values())
      clearTimeout(abort)
    },
  }
}
