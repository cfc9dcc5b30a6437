import postgres from 'postgres'
import { unavailable } from '../errors.ts'
import { DeadlineError, within } from '../lib/deadline.ts'
import { type Claim, createSemaphore } from '../lib/semaphore.ts'
import { isAnswer } from './faults.ts'
import type { EngineObserver } from './housekeeping.ts'
import type { Tls } from './tls.ts'

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
   * Hears what is notified on the channel. `onGap` is told whenever listening begins, at first and after the
   * connection was lost: whatever was notified before then went unheard.
   */
  listen(channel: string, onNotice: (payload: string) => void, onGap: () => void): void
  /** Statements that wait for an answer now, and the connections there may be for them. */
  load(): { pending: number; connections: number }
  close(): Promise<void>
}

/** Told when the database stops answering, and when it answers again. */
export type OnReach = (isReached: boolean, reason: string) => void

/** Whoever is told what becomes of the database. May be filled in later: a database is opened before all else. */
export type DatabaseObserver = {
  onReach?: OnReach
  /** The embedded engine cannot go on; only a restart helps. */
  onFailure?: (error: Error) => void
  engine?: EngineObserver
}

export type ClientOptions = {
  /** Zero for no deadline, as an operator's long commands need. */
  queryTimeoutMs: number
  maxConnections: number
  observer?: DatabaseObserver
}

type Driver = postgres.ISql<{ bigint: number }>
/** The driver's own types leave some of its options out. */
type DriverOptions = postgres.Options<{ bigint: postgres.PostgresType<number>; texts: postgres.PostgresType }> & {
  max_pipeline?: number
  socket?: () => unknown
}

/** Past this many statements waiting for an answer, one more is refused at once. */
const maxPending = 5_000
const maxTransactions = 4
/** How many transactions wait for their turn, and how many of them may be of one tenant. */
const [maxWaitingTransactions, maxWaitingPerTenant] = [500, 100]
/** The part of a caller's time after which a transaction is rolled back: before the caller is answered with an error. */
const transactionShare = 0.9
/** So long after it has ended a statement that takes too long, the server has said so, if its connection is alive. */
const silenceMs = 1_000
/** How long the server waits for the rest of a transaction before it gives the locks of one who is gone to others. */
const idleInTransactionMs = '10000'

/** Whether the failure is the database's own: one that answers to a statement with an error is well. */
const isAway = (error: unknown): boolean => !isAnswer(error) || /^(08|28|3D|53|57P)/.test(error.code)

/** As Postgres reads an array of texts. */
const writeTexts = (texts: (string | null)[]): string =>
  `{${texts.map((text) => (text === null ? 'null' : `"${text.replace(/["\\]/g, '\\$&')}"`)).join(',')}}`

export function openClient(
  target: { url: string; ssl: Tls } | { socket: () => unknown },
  { queryTimeoutMs, maxConnections, observer }: ClientOptions,
): Db {
  const options: DriverOptions = {
    connect_timeout: 3,
    // The default waits up to 20 s between attempts, so a database that is back would not be noticed.
    backoff: () => 0.25,
    onnotice: () => {},
    connection: { application_name: 'prompt-signals', statement_timeout: queryTimeoutMs },
    // It would ask for the types of arrays on every new connection. Only arrays of texts are sent; to read one, select
    // it with to_json.
    fetch_types: false,
    types: {
      bigint: { to: 20, from: [20], parse: Number, serialize: String },
      texts: { to: 1009, from: [], parse: String, serialize: writeTexts },
    },
  }
  const isRemote = 'url' in target
  const where =
    'url' in target ? { url: target.url, more: { ssl: target.ssl } } : { url: '', more: { socket: target.socket } }
  const open = (max: number, max_pipeline: number) =>
    postgres(where.url, { ...options, max, max_pipeline, ...where.more } as DriverOptions)
  // Transactions have connections of their own, one for each that may run at once: to a connection that is busy the
  // driver sends a `begin` and loses track of it, so that what comes next is never committed.
  const atOnce = Math.min(maxConnections, maxTransactions)
  // No statement is sent to a connection that still has one: a slow one never holds up those behind it. Within a
  // transaction the driver must be able to.
  const openPools = () => ({ statements: open(maxConnections, 0), transactions: open(atOnce, 1) })
  let pools = openPools()
  const listeners: Parameters<Db['listen']>[] = []
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
  /** Undefined before the first answer: what was never there cannot be lost. */
  let isReached: boolean | undefined
  let answeredAt = 0

  function noteAnswer(): void {
    answeredAt = performance.now()
    if (isReached === false) observer?.onReach?.(true, '')
    isReached = true
  }

  function noteFailure(error: unknown, sentAt: number): void {
    // A statement that waits too long, while others are answered, waits for a lock.
    const isSlow = error instanceof DeadlineError && answeredAt > sentAt
    if (!isAway(error)) noteAnswer()
    else if (isReached && !isSlow) {
      isReached = false
      observer?.onReach?.(false, (error as Error).message)
    }
  }

  const endPools = ({ statements, transactions }: typeof pools) =>
    Promise.all([statements.end({ timeout: 5 }), transactions.end({ timeout: 5 })])

  /**
   * A connection whose other end has gone without a word would be used for ever, or for the quarter of an hour that the
   * kernel takes to notice. The driver cannot be told to leave one alone, so all are exchanged.
   */
  function leave(silent: typeof pools): void {
    if (silent !== pools || !isRemote) return
    pools = openPools()
    for (const listener of listeners) hear(...listener)
    endPools(silent).catch(() => {})
  }

  function hear(...[channel, onNotice, onGap]: Parameters<Db['listen']>): void {
    // It connects by itself, and again whenever that is lost.
    pools.statements.listen(channel, onNotice, onGap).catch(() => {})
  }

  /** Waits so long for work on these connections, and then leaves them. */
  async function orLeave<T>(used: typeof pools, ms: number, work: PromiseLike<T>): Promise<T> {
    try {
      return await within(ms, work)
    } catch (error) {
      if (error instanceof DeadlineError) leave(used)
      throw error
    }
  }

  // The driver itself waits for ever when a server accepts connections and answers nothing.
  async function bounded<T>(query: postgres.PendingQuery<postgres.Row[]>): Promise<T> {
    if (pending >= maxPending) throw unavailable()
    pending += 1
    const [used, sentAt] = [pools, performance.now()]
    try {
      const rows = await (queryTimeoutMs === 0 ? query : within(queryTimeoutMs, query))
      noteAnswer()
      return rows as T
    } catch (error) {
      noteFailure(error, sentAt)
      // Only one that was never sent: it would otherwise stay in the driver's queue.
      if (!(query as { state?: unknown }).state) query.cancel()
      // It may have been sent only now, and the server gives it the same time again.
      else if (error instanceof DeadlineError) orLeave(used, queryTimeoutMs + silenceMs, query).catch(() => {})
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

  return {
    sql: sqlOn(() => pools.statements),
    transaction<T>(work: (sql: Sql) => Promise<T>, claim?: Claim) {
      const giveUpAt = queryTimeoutMs > 0 ? performance.now() + transactionMs : Number.POSITIVE_INFINITY
      return transactionSlots(() => {
        const isBounded = queryTimeoutMs > 0 && isRemote
        const ended = pools.transactions.begin(async (on) => {
          if (isBounded)
            await on`select set_config('idle_in_transaction_session_timeout', ${idleInTransactionMs}, true)`
          const result = await work(sqlOn(() => on))
          // What is answered with an error must not be done all the same.
          if (performance.now() > giveUpAt) throw unavailable()
          return result
        }) as Promise<T>
        // What begins and ends it has no other deadline. On the one connection of the engine it keeps its turn.
        return isBounded ? orLeave(pools, 2 * queryTimeoutMs, ended) : ended
      }, claim)
    },
    listen(...listener) {
      listeners.push(listener)
      hear(...listener)
    },
    load: () => ({ pending, connections: maxConnections + atOnce }),
    close: async () => void (await endPools(pools)),
  }
}
