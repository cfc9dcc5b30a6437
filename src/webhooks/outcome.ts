// Decides what follows from an attempt. Pure: the caller gives the time and the random number.

import { dayMs, hourMs, minuteMs } from '../lib/times.ts'
import type { Reply } from './post.ts'

export type Outcome = {
  status: 'delivered' | 'pending' | 'failed'
  /** How long to wait before the next attempt; null when nothing more is sent. */
  retryMs: number | null
  /** Why the endpoint is to be disabled, or null. */
  disabledReason: 'gone' | 'failing' | null
}

/** `attempts` were made before this one; `failingSince` is the first failure since the last success. */
type State = { attempts: number; failingSince: Date | null }

/** How long after the attempt before it each attempt follows. The first one follows the event. */
const stepsMs = [0, 5_000, 5 * minuteMs, 30 * minuteMs, ...[2, 5, 10, 14, 20, 24].map((hours) => hours * hourMs)]
const jitter = 0.2
const disabledAfterMs = 5 * dayMs

/** 2xx is a success. A redirect is a failure, because nothing checks where it leads. */
export const isDelivered = ({ code }: Reply): boolean => code !== null && code >= 200 && code < 300

/** `random` is at least 0 and below 1. */
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
