// While Postgres is away requests are rejected or late, and what was acknowledged stays.
import { type Cluster, whileStopped } from './cluster.ts'
import { compare, type Findings, hit, touched } from './findings.ts'

/** Less than the driver waits for a connection: one that was lost is replaced, and does not have to time out first. */
const RECONNECT_MS = 2_500

/**
 * Signals between two ends of all connections, about one for each client: those that are ended before a busy machine has
 * opened them would make a request wait for several ends.
 */
const RECORDED_BETWEEN = 50

/** The replicas stay up: whatever happens to Postgres, every request is answered. */
function assessPostgresFault(cluster: Cluster, from: number, delayedMs = Number.POSITIVE_INFINITY): Findings {
  const problems: string[] = []
  const during = touched(cluster, from)
  const rejected = during.filter(({ status }) => status === 500).length
  const delayed = during.filter(({ status, ms }) => status === 201 && ms >= delayedMs).length
  hit(problems, 'request was answered 500 or late', rejected + delayed)
  compare(problems, 'requests without an answer', 0, during.filter(({ status }) => status === 0).length)
  return { figures: `${rejected} answered 500, ${delayed} late`, problems }
}

export async function crashPostgres(cluster: Cluster): Promise<() => Findings> {
  const from = performance.now()
  await cluster.postgres.crash('SIGQUIT')
  await Bun.sleep(300)
  await cluster.postgres.restart()
  return () => assessPostgresFault(cluster, from)
}

export async function stopPostgres(cluster: Cluster, ms: number): Promise<() => Findings> {
  const backends = async () => {
    const rows = await cluster.sql<{ pid: number }[]>`select pid from pg_stat_activity`
    return rows.map(({ pid }) => pid)
  }
  const from = performance.now()
  await whileStopped(cluster.postgres, () => Bun.sleep(ms), backends)
  return () => assessPostgresFault(cluster, from, 1_000)
}

export async function makeReadOnly(cluster: Cluster, ms: number): Promise<() => Findings> {
  const from = performance.now()
  await cluster.sql`alter system set default_transaction_read_only = on`
  await cluster.sql`select pg_reload_conf()`
  await Bun.sleep(ms)
  await cluster.sql`alter system reset default_transaction_read_only`
  await cluster.sql`select pg_reload_conf()`
  return () => assessPostgresFault(cluster, from)
}

export async function endConnections(cluster: Cluster): Promise<() => Findings> {
  const from = performance.now()
  let ended = 0
  const countRecorded = () => cluster.ledger.attempts.filter(({ status }) => status === 201).length
  for (let time = 0; time < 10; time++) {
    const enough = countRecorded() + RECORDED_BETWEEN
    const giveUpAt = performance.now() + RECONNECT_MS
    await Bun.sleep(100)
    while (countRecorded() < enough && performance.now() < giveUpAt) await Bun.sleep(20)
    const rows = await cluster.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where backend_type = 'client backend' and pid <> pg_backend_pid()`
    ended += rows.length
  }
  return () => {
    const { figures, problems } = assessPostgresFault(cluster, from)
    hit(problems, 'connection was ended', ended)
    const slowest = Math.round(Math.max(...touched(cluster, from).map(({ ms }) => ms)))
    if (slowest > RECONNECT_MS) problems.push(`a request waited ${slowest} ms for a Postgres that was there all along`)
    return { figures: `${ended} connections ended, ${figures}`, problems }
  }
}
