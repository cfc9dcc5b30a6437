import { invalid } from '../errors.ts'
import { isFull } from '../limit/admit.ts'
import type { Usage } from '../limit/schema.ts'
import type { SignalToWrite, WriteResult } from './store.ts'

/**
 * The answer to the caller. The usage is that of the limit to report: the browser key's if it has one, unless it is the
 * organisation's month that refuses the signal.
 */
export type SignalOutcome = WriteResult & { limitedBy?: 'key_month' }

/** The outcome of a signal that is refused without asking Postgres. */
export function refuse({ createdAt, month }: SignalToWrite, { used, limit }: Usage): WriteResult {
  return { outcome: 'refused', id: null, createdAt, used, limit, month, keyUsage: null }
}

export const refuseByKey = (signal: SignalToWrite, full: Usage): SignalOutcome => ({
  ...refuse(signal, full),
  limitedBy: 'key_month',
})

export function toSignalOutcome(result: WriteResult): SignalOutcome {
  const { keyUsage } = result
  if (!keyUsage || (result.outcome === 'refused' && !isFull(keyUsage))) return result
  return { ...result, ...keyUsage, limitedBy: 'key_month' }
}

export function requireSame(result: SignalOutcome): SignalOutcome {
  if (result.outcome !== 'conflict') return result
  throw invalid('The Idempotency-Key was used for another signal.', [
    { path: 'Idempotency-Key', message: 'must be new, or come with the same prompt and body as before' },
  ])
}
