// While Postgres is away requests are rejected or late, and what was acknowledged stays.
import { withPostgres } from '../services.ts'
import { type Cluster, whileStopped } from './cluster.ts'
import { compare, type Findings, hit, touched } from './findings.ts'

/** The replicas stay up: whatever happens to Postgres, every request is answered. */
function assessPostgresFault(cluster: Cluster, from: number, delayedMs = Number.POSITIVE_INFINITY): Findings {
  const problems: string[] = []
  const during = touched(cluster, from)
  const rejected = during.filter(({ status }) => status === 503).length
  const delayed = during.filter(({ status, ms }) => status === 201 && ms >= delayedMs).length
  hit(problems, 'request was answered 503 or late', rejected + delayed)
  compare(problems, 'requests without an answer', 0, during.filter(({ status }) => status === 0).length)
  return { figures: `${rejected} answered 503, ${delayed} late`, problems }
}

/** The first crash meets ordinary commits, the others slow ones: signals are then committed before they are durable. */
export async function crashPostgres(cluster: Cluster, signal: 'SIGKILL' | 'SIGQUIT'): Promise<() => Findings> {
  const from = performance.now()
  for (let crash = 0; crash < 3; crash++) {
    await cluster.postgres.crash(signal)
    await Bun.sleep(300)
    await cluster.postgres.restart()
    await setCommitDelay(cluster, 10_000)
    await Bun.sleep(1_000)
  }
  await setCommitDelay(cluster, 0)
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

const setCommitDelay = ({ settings }: Cluster, microseconds: number) =>
  withPostgres(settings.DATABASE_URL, async (sql) => {
    await sql.unsafe(`alter system set commit_delay = ${microseconds}`)
    await sql`alter system set commit_siblings = 0`
    await sql`select pg_reload_conf()`
  })
