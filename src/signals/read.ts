import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { unavailable } from '../errors.ts'
import type { CursorPage } from '../lib/cursor_page.ts'
import { createSemaphore } from '../lib/semaphore.ts'
import type { Prompt } from '../prompts/find.ts'
import { isSearch, listSignals, type SignalRow } from './list.ts'
import type { SignalQuery, StatsQuery } from './read_query.ts'
import type { SignalRollup } from './rollup.ts'
import type { SignalStats, UsageReport } from './schema_reads.ts'
import { readStats } from './stats.ts'
import { readUsage } from './usage.ts'

/** What the recorded signals are read by. */
export type SignalReader = {
  list(prompt: Prompt, query: SignalQuery): Promise<CursorPage<SignalRow>>
  stats(prompt: Prompt, query: StatsQuery): Promise<SignalStats>
  usage(organisationId: number): Promise<UsageReport['data']>
  /** Runs a read of many rows, of which an organisation has no more than its share at a time. */
  limited<T>(organisationId: number, read: () => Promise<T>): Promise<T>
}

/** Fewer reads of many rows than there are connections, so that signals and histories always find one. */
const limits = { permits: 4, permitsPerTenant: 2, maxWaiting: 200, maxWaitingPerTenant: 50, patienceMs: 4_000 }

export function createSignalReader(db: Db, clock: Clock, rollup: SignalRollup): SignalReader {
  const semaphore = createSemaphore({ ...limits, rejectWith: unavailable })
  const limited: SignalReader['limited'] = (organisationId, read) => semaphore(read, { tenant: organisationId })

  return {
    limited,
    list({ id, organisationId }, query) {
      const read = () => listSignals(db, id, query)
      return isSearch(query.filter) ? limited(organisationId, read) : read()
    },
    stats: ({ id, organisationId }, query) => limited(organisationId, () => readStats(db, rollup, id, query)),
    usage: (organisationId) => limited(organisationId, () => readUsage(db, clock, rollup, organisationId)),
  }
}
