import { before } from '../lib/deadline.ts'

/** A little under the five seconds promised, so that the answer itself is there in time. */
const requestMs = 4_500

/** Awaits work with whatever is left of the request's time. */
export type InTime = <T>(work: Promise<T>) => Promise<T>

export function createDeadline(): InTime {
  const endsAt = performance.now() + requestMs
  return (work) => before(endsAt, work)
}
