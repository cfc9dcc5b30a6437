import { DeadlineError } from '../lib/deadline.ts'
import { isDown, isPostgresError, isReadOnly, reasonOf } from './errors.ts'

/** Called when the database stops answering or is found to be read-only, and when it serves again. */
export type OnAvailability = (isUp: boolean, reason: string) => void

/** The same for Redis, with the reason in a word. */
export type OnRedisAvailability = (isUp: boolean, reason: string, code: string) => void

/** Derives from the outcomes of statements whether the database can be reached. */
export function createAvailabilityTracker(onAvailability: OnAvailability) {
  /** Undefined before the first answer, because a database that was never reached cannot be lost. */
  let isUp: boolean | undefined
  let isKnownReadOnly = false
  let answeredAt = 0

  function answered(): void {
    answeredAt = performance.now()
    if (isUp === false) onAvailability(true, '')
    isUp = true
    isKnownReadOnly = false
  }

  return {
    answered,
    failed(error: unknown, sentAt: number) {
      // A statement that times out while others are answered waits for a lock.
      const isSlow = error instanceof DeadlineError && answeredAt > sentAt
      // Most errors that it returns for a statement show that it is up.
      if (isPostgresError(error) && !isDown(error)) return answered()
      // A failover begins with lost connections, and only later is the server found to be the wrong one.
      const isChange = isUp === true || (isUp === false && isReadOnly(error) && !isKnownReadOnly)
      if (!isChange || isSlow) return
      isUp = false
      isKnownReadOnly = isReadOnly(error)
      onAvailability(false, reasonOf(error))
    },
  }
}
