import { createSemaphore } from '../lib/semaphore.ts'

/** Runs a read of many rows once the organisation and the service have a permit for it. */
export type HeavyReads = <T>(organisationId: number, read: () => Promise<T>) => Promise<T>

/** Fewer permits than there are connections, so that signals and histories always find one. */
const limits = { permits: 4, permitsPerTenant: 2, maxWaiting: 200, maxWaitingPerTenant: 50, patienceMs: 4_000 }

export function createHeavyReads(): HeavyReads {
  const semaphore = createSemaphore(limits)
  return (organisationId, read) => semaphore(read, { tenant: organisationId })
}
