import { DeadlineError, within } from '../lib/deadline.ts'
import { runPeriodically } from '../lib/periodic.ts'
import type { Db, Sql } from './client.ts'
import { openPool, type SessionOptions, type Subscription, type Target } from './driver.ts'

/** How long to wait for a second server connection of the pooler. A pooler with a single one cannot mix anything up. */
const secondServerMs = 1_000
/** Other clients of the pooler may take the server connection that is meant to be kept busy. */
const attempts = 3

const mixes =
  'the connection pooler in front of it mixes up prepared statements. Use PgBouncer 1.21 or newer with max_prepared_statements above 0, or put ?prepare=false at the end of DATABASE_URL.'

/**
 * Rejects a pooler that runs the statements of one connection on servers where they were not prepared. Returns whether
 * there is a pooler at all.
 */
export async function rejectMixingPooler(target: Target, session: SessionOptions, sql: Sql): Promise<boolean> {
  const rows = await sql<{ pid: number }>`select pg_backend_pid() as pid`
  const { state } = rows as unknown as { state: { pid: number } }
  // Only a pooler shows a process id that is not that of the server behind it.
  if (rows[0]?.pid === state.pid) return false
  for (let attempt = 0; attempt < attempts; attempt++) {
    const isMixing = await probe(target, session)
    if (isMixing) throw new Error(mixes)
    if (isMixing === false) return true
  }
  return true
}

/** Prepares a statement, keeps its server busy and runs it again; undefined when it ran there again: no evidence. */
async function probe(target: Target, session: SessionOptions): Promise<boolean | undefined> {
  const caller = openPool(target, session, 1, 0)
  const blocker = openPool(target, session, 1, 1)
  const readPid = () => caller<{ pid: number }[]>`select pg_backend_pid() as pid`
  try {
    const [first] = await readPid()
    return (await blocker.begin(async (on) => {
      await on`select 1`
      const query = readPid()
      const [second] = await within(secondServerMs, query)
      // The driver prepares a statement again that the server does not know.
      if ((query as unknown as { retried?: Error }).retried) return true
      return first?.pid === second?.pid ? undefined : false
    })) as boolean | undefined
  } catch (error) {
    if (error instanceof DeadlineError) return false
    throw error
  } finally {
    await Promise.all([caller.end({ timeout: 0 }), blocker.end({ timeout: 0 })])
  }
}

const pollEveryMs = 1_000

/**
 * Replaces notifications, which no pooler passes on in transaction mode: once a second, the subscribers of a table that
 * has changed are told that they missed something. Each channel is named after its table. Behind a pooler a failover
 * need not cost a connection, so another server counts as one that was lost.
 */
export function pollChanges(db: Db): Db {
  const subscriptions: { subscription: Subscription; version?: string }[] = []
  const lossListeners: (() => void)[] = []
  let server: string | undefined

  async function poll(): Promise<void> {
    if (subscriptions.length === 0) return
    const polled = [...subscriptions]
    const rows = await db.sql<{ server: string; version: string }>`
      select pg_postmaster_start_time()::text as server,
        concat_ws(' ', pg_stat_get_tuples_updated(to_regclass(channel)), pg_stat_get_tuples_deleted(to_regclass(channel)))
          as version
      from unnest(${polled.map(({ subscription: [channel] }) => channel)}::text[]) with ordinality as polled (channel, n)
      order by n`
    const found = rows[0]?.server
    const isOther = server !== undefined && server !== found
    server = found
    if (isOther) for (const onLost of lossListeners) onLost()
    for (const [index, one] of polled.entries()) {
      const version = rows[index]?.version as string
      if (isOther || version !== one.version) one.subscription[2]()
      one.version = version
    }
  }

  const timer = runPeriodically(pollEveryMs, poll)
  return {
    ...db,
    listen: (...subscription) => void subscriptions.push({ subscription }),
    onConnectionLost(listener) {
      lossListeners.push(listener)
      db.onConnectionLost(listener)
    },
    close() {
      timer.stop()
      return db.close()
    },
  }
}
