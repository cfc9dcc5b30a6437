import type postgres from 'postgres'
import { unavailable } from '../errors.ts'
import { DeadlineError, within } from '../lib/deadline.ts'
import { type Claim, createSemaphore } from '../lib/semaphore.ts'
import type { Driver, Session, Target } from './driver.ts'
import { isAnswer, isConnectionLost, isReadOnly, ReadOnlyError } from './faults.ts'
import type { EngineObserver } from './housekeeping.ts'
import { type Listener, openPools, type PoolPair } from './pools.ts'
import { createReachTracker, type OnReach } from './reach.ts'

export type Sql = {
  /** Runs one statement. The text must stay constant: each distinct one is prepared and kept. */
  <Row extends object = Record<string, unknown>>(text: TemplateStringsArray, ...values: unknown[]): Promise<Row[]>
  /** Runs one statement whose text is put together as it is needed, and so is not kept. */
  dynamic<Row extends object = Record<string, unknown>>(text: string, values?: string[]): Promise<Row[]>
  /** Runs a script of several statements. */
  script(text: string): Promise<void>
}

export type Db = {
  sql: Sql
  /**
   * Commits when the work resolves, rolls back when it rejects or takes too long. Few transactions run at once: they
   * wait for their turn, and those with the same key for each other, before they take a connection.
   */
  transaction<T>(work: (sql: Sql) => Promise<T>, claim?: Claim): Promise<T>
  /**
   * Subscribes to a channel of notifications. `onGap` is called whenever the subscription begins, at first and after
   * the connection was lost: notifications from before then were missed.
   */
  listen(...listener: Listener): void
  /** Rejects with a ReadOnlyError, and replaces the connections, when they lead to a server that can only be read. */
  requireWritable(): Promise<void>
  /** Statements that wait for an answer now, and the connections there may be for them. */
  load(): { pending: number; connections: number }
  close(): Promise<void>
}

/** What observes the database. Its parts may be set later, since a database is opened before all else. */
export type DatabaseObserver = {
  onReach?: OnReach
  /** The embedded engine cannot go on; only a restart helps. */
  onFailure?: (error: Error) => void
  engine?: EngineObserver
}

/** A session without a deadline is for the long commands of an operator. */
export type ClientOptions = Session & {
  maxConnections: number
  observer?: DatabaseObserver
}

/** Past this many statements that wait for an answer, one more fails at once. */
const maxPending = 5_000
const maxTransactions = 4
/** How many transactions wait for their turn, and how many of them may be of one tenant. */
const [maxWaitingTransactions, maxWaitingPerTenant] = [500, 100]
/** The part of a caller's time after which a transaction is rolled back: before the caller is answered with an error. */
const transactionShare = 0.9
/** How long after its `statement_timeout` a server has said so, if its connection is alive. */
const silenceMs = 1_000
/** How long the server waits for the rest of a transaction before it ends it, and with it the locks of a lost caller. */
const idleInTransactionMs = '10000'

export function openClient(
  target: Target,
  { queryTimeoutMs, maxConnections, mustBeWritable = false, observer }: ClientOptions,
): Db {
  const isRemote = 'url' in target
  // Transactions have connections of their own, one for each that may run at once: to a connection that is busy the
  // driver sends a `begin` and loses track of it, so that what comes next is never committed.
  const atOnce = Math.min(maxConnections, maxTransactions)
  const session = { queryTimeoutMs, mustBeWritable }
  const pools = openPools(target, session, { statements: maxConnections, transactions: atOnce })
  const transactionMs = transactionShare * queryTimeoutMs
  const transactionSlots = createSemaphore({
    permits: atOnce,
    permitsPerTenant: Math.ceil(atOnce / 2),
    maxWaiting: maxWaitingTransactions,
    maxWaitingPerTenant,
    patienceMs: transactionMs,
    refuse: unavailable,
  })
  let pending = 0
  const reach = createReachTracker((...change) => observer?.onReach?.(...change))

  /** The result of work on these connections, which are replaced when it does not come in time. */
  async function withinOrReplace<T>(used: PoolPair, ms: number, work: PromiseLike<T>): Promise<T> {
    try {
      return await within(ms, work)
    } catch (error) {
      if (error instanceof DeadlineError) pools.replace(used)
      throw error
    }
  }

  // The driver itself waits for ever when a server accepts connections and answers nothing.
  async function bounded<T>(query: postgres.PendingQuery<postgres.Row[]>): Promise<T> {
    if (pending >= maxPending) throw unavailable()
    pending += 1
    const [used, sentAt] = [pools.current, performance.now()]
    try {
      const rows = await (queryTimeoutMs === 0 ? query : within(queryTimeoutMs, query))
      reach.answered()
      return rows as T
    } catch (error) {
      reach.failed(error, sentAt)
      if (mustBeWritable && isAnswer(error) && isReadOnly(error)) pools.replace(used)
      // Only one that was never sent: it would otherwise stay in the driver's queue.
      if (!(query as { state?: unknown }).state) query.cancel()
      // It may have been sent only now, and the server gives it the same time again.
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

  /**
   * Begins a transaction, prepares it and runs the work. Connections that were lost while they were idle are noticed
   * only here; as nothing was done yet, the transaction then begins again on another.
   */
  async function begin<T>(prepare: (on: Driver) => Promise<() => Promise<T>>): Promise<T> {
    for (let left = atOnce; ; left--) {
      let hasBegun = false
      try {
        return (await pools.current.transactions.begin(async (on) => {
          const work = await prepare(on)
          hasBegun = true
          return work()
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
      reach.failed(error, performance.now())
      pools.replace(used)
      throw error
    },
    transaction<T>(work: (sql: Sql) => Promise<T>, claim?: Claim) {
      const giveUpAt = queryTimeoutMs > 0 ? performance.now() + transactionMs : Number.POSITIVE_INFINITY
      return transactionSlots(() => {
        const isBounded = queryTimeoutMs > 0 && isRemote
        const ended = begin(async (on) => {
          if (isBounded)
            await on`select set_config('idle_in_transaction_session_timeout', ${idleInTransactionMs}, true)`
          return async () => {
            const result = await work(sqlOn(() => on))
            // What is answered with an error must not be done all the same.
            if (performance.now() > giveUpAt) throw unavailable()
            return result
          }
        })
        // The `begin` and `commit` have no other deadline. On the one connection of the engine nothing could go on
        // without them, so they are awaited there.
        return isBounded ? withinOrReplace(pools.current, 2 * queryTimeoutMs, ended) : ended
      }, claim)
    },
    listen: pools.subscribe,
    load: () => ({ pending, connections: maxConnections + atOnce }),
    close: pools.end,
  }
}
