import type postgres from 'postgres'
import { unavailable } from '../errors.ts'
import { createSemaphore, type PermitRequest } from '../lib/concurrency.ts'
import { DeadlineError, within } from '../lib/deadline.ts'
import { yieldFor } from '../lib/periodic.ts'
import { type Driver, openPools, type PoolPair, type SessionOptions, type Target } from './driver.ts'
import {
  createAvailabilityTracker,
  isConnectionLost,
  isPostgresError,
  isReadOnly,
  type OnAvailability,
  ReadOnlyError,
} from './errors.ts'
import type { EngineObserver } from './housekeeping.ts'

export type Sql = {
  /** Runs one statement. The text must be the same object in every call: each is prepared and kept. */
  <Row extends object = Record<string, unknown>>(text: TemplateStringsArray, ...values: unknown[]): Promise<Row[]>
  /** Runs one statement whose text varies, and so is not prepared. */
  dynamic<Row extends object = Record<string, unknown>>(text: string, values?: string[]): Promise<Row[]>
  script(text: string): Promise<void>
}

export type Db = {
  sql: Sql
  /**
   * Commits when the work resolves; rolls back when it rejects or its deadline (default: the query timeout) passes.
   * Only a few transactions run concurrently. The others wait before they take a connection, each tenant in a queue.
   */
  transaction<T>(work: (sql: Sql) => Promise<T>, permitRequest?: PermitRequest, isolation?: Isolation): Promise<T>
  /** Runs a read of many rows once the organisation and the service have a permit for it. */
  heavyRead<T>(organisationId: number, read: () => Promise<T>): Promise<T>
  /** Calls the listener when a connection is lost, before anything is sent on one that takes its place. */
  onConnectionLost(listener: () => void): void
  /** Rejects with a ReadOnlyError, and replaces the connections, when they lead to a server that can only be read. */
  requireWritable(): Promise<void>
  /** The embedded engine does nothing else during a statement, so background work takes small steps there. */
  isEmbedded: boolean
  /** The number of pending statements, and of the connections that there may be for them. */
  load(): { pending: number; connections: number }
  close(): Promise<void>
}

/** With `repeatable read`, every statement of a transaction sees the same snapshot. */
export type Isolation = 'read committed' | 'repeatable read'

/** Observers of the database. Each may be set later, since the database is opened before everything else. */
export type DatabaseObserver = {
  /** Called before the embedded engine creates a database, because there is none. */
  onCreating?(dataDir: string): void
  onAvailability?: OnAvailability
  /** Called when the embedded engine has failed; only a restart helps. */
  onFailure?: (error: Error) => void
  engine?: EngineObserver
}

/** The commands of an operator may take long, and so have no query timeout. */
export type ClientOptions = SessionOptions & {
  maxConnections: number
  observer?: DatabaseObserver
}

/** A statement is rejected immediately while this many are pending. */
const maxPending = 5_000
/** Two more than there are heavy reads, which may need a transaction for their snapshot: some are left to writers. */
const maxTransactions = 6
/** How many transactions may queue, in all and of one tenant. */
const [maxWaitingTransactions, maxWaitingPerTenant] = [500, 100]
/**
 * Fewer permits than there are connections, so that signals and histories always find one. Under overload, every read that
 * starts has waited for as long as it may, and must still be in time for its client.
 */
const heavyReads = { permits: 4, permitsPerTenant: 2, maxWaiting: 200, maxWaitingPerTenant: 50, patienceMs: 2_000 }
/** How long the embedded engine rests from transactions, at most. After a long one, the next must still be in time. */
const maxRestMs = 200
/** The share of the query timeout that is left for a commit: a transaction must end before its caller gets an error. */
const commitShare = 0.1
/** A server whose connection is alive reports a `statement_timeout` within this time. */
const silenceMs = 1_000

export function openClient(target: Target, options: ClientOptions): Db {
  const { queryTimeoutMs, maxConnections, mustBeWritable = false, observer } = options
  const isRemote = 'url' in target
  // Transactions have a separate pool with a connection for each: on a busy connection the driver loses track of the
  // `begin`, and the statements after it are never committed.
  const maxConcurrent = Math.min(maxConnections, maxTransactions)
  const pools = openPools(target, options, { statements: maxConnections, transactions: maxConcurrent })
  const commitMs = commitShare * queryTimeoutMs
  const waiting = {
    maxWaiting: maxWaitingTransactions,
    maxWaitingPerTenant,
    patienceMs: queryTimeoutMs > 0 ? queryTimeoutMs - commitMs : Number.POSITIVE_INFINITY,
  }
  const permitsPerTenant = Math.ceil(maxConcurrent / 2)
  const limitTransactions = createSemaphore({ ...waiting, permits: maxConcurrent, permitsPerTenant })
  const limitHeavyReads = createSemaphore(heavyReads)
  let pending = 0
  const availability = createAvailabilityTracker((...change) => observer?.onAvailability?.(...change))

  /** Resolves with the result of work on these connections, and replaces them when it takes too long. */
  async function withinOrReplace<T>(used: PoolPair, ms: number, work: PromiseLike<T>): Promise<T> {
    try {
      return await within(ms, work)
    } catch (error) {
      if (error instanceof DeadlineError) pools.replace(used)
      throw error
    }
  }

  // The driver waits forever for a server that accepts connections and sends nothing.
  async function bounded<T>(query: postgres.PendingQuery<postgres.Row[]>): Promise<T> {
    if (pending >= maxPending) throw unavailable('overload')
    pending += 1
    const [used, sentAt] = [pools.current, performance.now()]
    try {
      const rows = await (queryTimeoutMs === 0 ? query : within(queryTimeoutMs, query))
      availability.answered()
      return rows as T
    } catch (error) {
      availability.failed(error, sentAt)
      if (mustBeWritable && isPostgresError(error) && isReadOnly(error)) pools.replace(used)
      // Only a query that was never sent is cancelled: it would otherwise stay in the driver's queue.
      if (!(query as { state?: unknown }).state) query.cancel()
      // The query may have been sent only now, and then the server gives it the same time again.
      else if (error instanceof DeadlineError) withinOrReplace(used, queryTimeoutMs + silenceMs, query).catch(() => {})
      throw error
    } finally {
      pending -= 1
    }
  }

  const sqlOn = (driver: () => Driver): Sql =>
    Object.assign(
      <Row extends object>(text: TemplateStringsArray, ...values: unknown[]) =>
        bounded<Row[]>(driver()(text, ...(values as postgres.ParameterOrFragment<number>[]))),
      {
        dynamic: <Row extends object>(text: string, values: string[] = []) =>
          bounded<Row[]>(driver().unsafe(text, values)),
        script: async (text: string) => void (await driver().unsafe(text).simple()),
      },
    )

  /** The driver notices a lost idle connection only here. Nothing was done yet, so it begins again on another. */
  async function begin<T>(isolation: Isolation, work: (on: Driver) => Promise<T>): Promise<T> {
    for (let left = maxConcurrent; ; left--) {
      let hasBegun = false
      try {
        return (await pools.current.transactions.begin(`isolation level ${isolation}`, (on) => {
          hasBegun = true
          return work(on)
        })) as T
      } catch (error) {
        if (hasBegun || left === 0 || !isConnectionLost(error)) throw error
      }
    }
  }

  const sql = sqlOn(() => pools.current.statements)

  return {
    sql,
    async requireWritable() {
      const used = pools.current
      const [row] = await sql<{ isReadOnly: boolean }>`
        select current_setting('transaction_read_only') = 'on' as "isReadOnly"`
      if (!row?.isReadOnly) return
      const error = new ReadOnlyError()
      availability.failed(error, performance.now())
      pools.replace(used)
      throw error
    },
    async transaction(work, permitRequest = {}, isolation = 'read committed') {
      const { deadline = performance.now() + queryTimeoutMs } = permitRequest
      const hasDeadline = queryTimeoutMs > 0 && deadline < Number.POSITIVE_INFINITY
      // A transaction whose caller gets an error must not be carried out.
      const requireTime = () => {
        if (hasDeadline && performance.now() > deadline - commitMs) throw unavailable('timeout')
      }
      const release = await limitTransactions.acquire(permitRequest)
      const startedAt = performance.now()
      try {
        requireTime()
        const isBounded = hasDeadline && isRemote
        const ended = begin(isolation, async (on) => {
          // Waiting for the connection may have taken all the time.
          requireTime()
          const result = await work(sqlOn(() => on))
          requireTime()
          return result
        })
        // The `begin` and `commit` have no other deadline. The embedded engine has one connection that is not replaced,
        // so there they are awaited.
        return await (isBounded ? withinOrReplace(pools.current, 2 * queryTimeoutMs, ended) : ended)
      } finally {
        // The embedded engine does nothing else during a transaction. Statements that wait get up to as much time after it.
        if (isRemote || pending === 0) release()
        else yieldFor(Math.max(startedAt, performance.now() - maxRestMs)).then(release)
      }
    },
    heavyRead: (organisationId, read) => limitHeavyReads(read, { tenant: organisationId }),
    onConnectionLost: pools.onLost,
    isEmbedded: !isRemote,
    load: () => ({ pending, connections: maxConnections + maxConcurrent }),
    close: pools.end,
  }
}
