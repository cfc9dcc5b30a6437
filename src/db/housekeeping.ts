// The checkpoints and vacuums that a Postgres server runs and the embedded engine does not.
import type { Duplex } from 'node:stream'
import postgres from 'postgres'
import { runPeriodically } from '../lib/periodic.ts'

const EVERY_MS = 60_000
const CHECKPOINT_AFTER_BYTES = 16 * 1024 * 1024

export type Housekeeping = ReturnType<typeof openHousekeeping>

export type EngineObserver = {
  checkpointed(seconds: number): void
  /** A round of housekeeping failed, and with it perhaps the checkpoint. */
  housekeepingFailed(error: Error): void
}

/** Runs on its own connection, so that its statements never become part of another transaction. */
export function openHousekeeping(connect: () => Duplex, observer: { engine?: EngineObserver } = {}) {
  // The driver's types leave out its `socket` option.
  const options: postgres.Options<Record<string, never>> & { socket: () => Duplex } = {
    socket: connect,
    max: 1,
    ssl: false,
    prepare: false,
    fetch_types: false,
    max_lifetime: null,
    // Connecting waits for the backend as every statement does, however long the transaction before it takes.
    connect_timeout: 0,
    onnotice: () => {},
  }
  const sql = postgres(options)
  let checkpointAt = 0
  let closing = false

  async function readPosition(): Promise<number> {
    const [row] = await sql`select (pg_current_wal_insert_lsn() - '0/0')::float8 as position`
    return row?.position
  }

  async function checkpoint(): Promise<void> {
    const beganAt = performance.now()
    await sql`checkpoint`.simple()
    observer.engine?.checkpointed((performance.now() - beganAt) / 1_000)
    // The position is read afterwards, since a checkpoint is itself written to the log.
    checkpointAt = await readPosition()
  }

  /** Vacuums and analyses the tables that need it, and checkpoints when enough was written. Run by the timer. */
  async function maintain(): Promise<void> {
    // A backend keeps its counts to itself for a while; without this a burst of changes is seen a round late.
    await sql`select pg_stat_force_next_flush()`
    // The thresholds are those of Postgres' own autovacuum.
    const tables = await sql<{ name: string }[]>`
      select c.oid::regclass::text as name
      from pg_class c join pg_stat_all_tables s on s.relid = c.oid
      where c.relkind in ('r', 'm') and (
        s.n_dead_tup > 50 + 0.2 * greatest(c.reltuples, 0)
        or s.n_ins_since_vacuum > 1000 + 0.2 * greatest(c.reltuples, 0)
        or s.n_mod_since_analyze > 50 + 0.1 * greatest(c.reltuples, 0)
        or age(c.relfrozenxid) > 200000000
      )`
    // One statement per table, so that requests get the backend in between.
    for (const { name } of tables) await sql`vacuum (analyze) ${sql.unsafe(name)}`.simple()
    if ((await readPosition()) - checkpointAt > CHECKPOINT_AFTER_BYTES) await checkpoint()
  }

  // The next round retries. The backend reports a failure of the engine itself.
  const timer = runPeriodically(EVERY_MS, maintain, (error) => {
    if (!closing) observer.engine?.housekeepingFailed(error as Error)
  })

  return {
    checkpoint,
    maintain,
    async close() {
      closing = true
      timer.stop()
      // The timeout is zero because a transaction that another connection holds open must not delay the close.
      await sql.end({ timeout: 0 })
    },
  }
}
