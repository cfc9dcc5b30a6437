import { DeadlineError, within } from '../lib/deadline.ts'
import type { Sql } from './client.ts'
import { openPool, requiredSettings, type SessionOptions, type Target } from './driver.ts'

/** How long to wait for a second server connection of the pooler. A pooler with a single one cannot mix anything up. */
const secondServerMs = 1_000
/** Other clients of the pooler may take the server connection that is meant to be kept busy. */
const attempts = 3

const mixes =
  'the connection pooler in front of it mixes up prepared statements. Use PgBouncer 1.21 or newer with max_prepared_statements above 0, or put ?prepare=false at the end of DATABASE_URL.'

/** Rejects sessions without a setting that the statements rely on, as behind a pooler that drops it. */
export async function requireSettings(sql: Sql): Promise<void> {
  const rows = await sql<{ name: keyof typeof requiredSettings; value: string }>`
    select name, setting as value from pg_settings where name = any(${Object.keys(requiredSettings)}::text[])`
  for (const { name, value } of rows) {
    const required = requiredSettings[name]
    // The style of dates has a second part, which does not matter.
    if (value !== required && !value.startsWith(`${required},`)) {
      throw new Error(`${name} is '${value}' there. Run: alter role USER set ${name} = '${required}'`)
    }
  }
}

/** Rejects a pooler that runs the statements of one connection on servers where they were not prepared. */
export async function rejectMixingPooler(target: Target, session: SessionOptions, sql: Sql): Promise<void> {
  const rows = await sql<{ pid: number }>`select pg_backend_pid() as pid`
  const { state } = rows as unknown as { state: { pid: number } }
  // Only a pooler shows a process id that is not that of the server behind it.
  if (rows[0]?.pid === state.pid) return
  for (let attempt = 0; attempt < attempts; attempt++) {
    const isMixing = await probe(target, session)
    if (isMixing) throw new Error(mixes)
    if (isMixing === false) return
  }
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
