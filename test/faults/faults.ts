// The faults of single servers, each named after what must hold through it.
import { withPostgres, withRedis } from '../services.ts'
import { compare, endOf, type Findings, hit, slowestOf, touched } from './audit.ts'
import { type Attempt, createSignal, hasFailed, type Replica, repeat, send, type Tenant } from './load.ts'
import { type Plain, type RunningReplica, readGate, setGate, whileStopped } from './system.ts'

export type Fault<System> = {
  name: string
  /** Injects the fault under load; resolves with its assessment, to be run once every request has ended. */
  inject(system: System, small: Tenant): Promise<() => Findings>
  /** Whether `bun run test` runs it; `bun run test:all` runs all. */
  isInEveryRun?: true
}

export const faults: Fault<Plain>[] = [
  { name: 'kill -9 of a replica, three times: nothing acknowledged is lost', inject: killReplica, isInEveryRun: true },
  { name: 'Redis FLUSHALL: no caller notices', inject: flushRedis },
  { name: 'Redis killed and back empty: no caller notices', inject: killRedis },
  { name: 'Redis stopped for 2 s: no caller waits for it', inject: stopRedis },
  {
    name: 'Postgres ended immediately and restarted, three times: nothing acknowledged is lost',
    inject: (system) => crashPostgres(system, 'SIGQUIT'),
    isInEveryRun: true,
  },
  {
    name: 'kill -9 of Postgres, three times: nothing acknowledged is lost',
    inject: (system) => crashPostgres(system, 'SIGKILL'),
  },
  {
    name: 'Postgres stopped for 3 s: late or rejected, never wrong',
    inject: (system) => stopPostgres(system, 3_000),
  },
  {
    name: 'Postgres stopped for 6 s: rejected in time, never wrong',
    inject: (system) => stopPostgres(system, 6_000),
  },
]

/** The replicas stay up: whatever happens to Postgres, every request is answered. */
function assessPostgresFault(system: Plain, from: number, delayedMs = Number.POSITIVE_INFINITY): Findings {
  const problems: string[] = []
  const during = touched(system, from)
  const rejected = during.filter(({ status }) => status === 503).length
  const delayed = during.filter(({ status, ms }) => status === 201 && ms >= delayedMs).length
  hit(problems, 'request was answered 503 or late', rejected + delayed)
  compare(problems, 'requests without an answer', 0, during.filter(({ status }) => status === 0).length)
  return { figures: `${rejected} answered 503, ${delayed} late`, problems }
}

/** The first crash meets ordinary commits, the others slow ones: signals are then committed before they are durable. */
async function crashPostgres(system: Plain, signal: 'SIGKILL' | 'SIGQUIT'): Promise<() => Findings> {
  const { postgres } = system.servers
  const setCommitDelay = (microseconds: number) =>
    withPostgres(postgres.url, async (sql) => {
      await sql.unsafe(`alter system set commit_delay = ${microseconds}`)
      await sql`alter system set commit_siblings = 0`
      await sql`select pg_reload_conf()`
    })
  const from = performance.now()
  for (let crash = 0; crash < 3; crash++) {
    await postgres.crash(signal)
    await Bun.sleep(300)
    await postgres.restart()
    await setCommitDelay(10_000)
    await Bun.sleep(1_000)
  }
  await setCommitDelay(0)
  return () => assessPostgresFault(system, from)
}

async function stopPostgres(system: Plain, ms: number): Promise<() => Findings> {
  const backends = async () => {
    const rows = await system.sql<{ pid: number }[]>`select pid from pg_stat_activity`
    return rows.map(({ pid }) => pid)
  }
  const from = performance.now()
  await whileStopped(system.servers.postgres, () => Bun.sleep(ms), backends)
  return () => assessPostgresFault(system, from, 1_000)
}

/** Longer than the service may take to give Redis up, far shorter than Redis stands still. */
const WITHOUT_REDIS_MS = 1_000
/** The service waits this long for Redis, so a request that met a stopped one took at least about as long. */
const REDIS_PATIENCE_MS = 45

/** Redis is never the truth: no request fails, and none waits for it. */
function assessRedisFault(system: Plain, from: number, to: number, problems: string[]): string {
  const during = touched(system, from).filter(({ sentAt }) => sentAt <= to)
  const recorded = during.filter(({ status }) => status === 201).length
  const slowest = slowestOf(during)
  const failed = during.filter(hasFailed).length
  hit(problems, 'signal was recorded meanwhile', recorded)
  compare(problems, 'requests failed for want of Redis', 0, failed)
  if (slowest > WITHOUT_REDIS_MS) problems.push(`a request waited ${slowest} ms for Redis`)
  return `${recorded} recorded meanwhile, ${failed} failed, slowest of them ${slowest} ms`
}

async function flushRedis(system: Plain): Promise<() => Findings> {
  const from = performance.now()
  let flushed = 0
  for (let time = 0; time < 3; time++) {
    await Bun.sleep(200)
    flushed += await withRedis(system.servers.redis.url, async (client) => {
      const [[, size] = []] = (await client.multi().dbsize().flushall().exec()) ?? []
      return size as number
    })
  }
  const to = performance.now()
  return () => {
    const problems: string[] = []
    hit(problems, 'key was flushed', flushed)
    return { figures: `${flushed} keys flushed, ${assessRedisFault(system, from, to, problems)}`, problems }
  }
}

const redisSeenBy = async ({ url }: Replica): Promise<string> =>
  ((await (await fetch(`${url}/readyz`)).json()) as { redis: string }).redis

async function killRedis(system: Plain): Promise<() => Findings> {
  const { redis } = system.servers
  const from = performance.now()
  await redis.crash('SIGKILL')
  await Bun.sleep(1_000)
  const seen = await Promise.all(system.replicas.map(redisSeenBy))
  const to = performance.now()
  await redis.restart()
  return () => {
    const problems: string[] = []
    compare(problems, 'what the replicas say of Redis meanwhile', ['down', 'down'], seen)
    return { figures: assessRedisFault(system, from, to, problems), problems }
  }
}

async function stopRedis(system: Plain): Promise<() => Findings> {
  const { ledger, replicas, servers } = system
  // The gate is called only for organisations close to their limits. Of a full one it confirms a refusal again and again.
  const full = await system.createTenant(0)
  const from = performance.now()
  await whileStopped(servers.redis, async () => {
    const asking = repeat(() => Promise.all(replicas.map((one) => send(ledger, one, createSignal(full)))), 100)
    await Bun.sleep(2_000)
    await asking.stop()
  })
  const to = performance.now()
  return () => {
    const problems: string[] = []
    const met = touched(system, from).filter(({ sentAt, ms }) => sentAt <= to && ms >= REDIS_PATIENCE_MS).length
    hit(problems, 'request met the stopped Redis', met)
    return { figures: `${met} met it, ${assessRedisFault(system, from, to, problems)}`, problems }
  }
}

/** The row is held so long at most, far less than the other replica's signals wait for it before they fail. */
const GATE_MS = 2_000
/** A replica on a busy machine may give Redis up before it was counted there: then another one is tried. */
const GATE_ATTEMPTS = 5

async function killReplica(system: Plain, small: Tenant): Promise<() => Findings> {
  const [replica, other] = system.replicas as [RunningReplica, RunningReplica]
  const kills: number[] = []
  const kill = async () => {
    kills.push(performance.now())
    await replica.kill()
  }
  await kill()
  await replica.start()
  await Bun.sleep(300)
  let ahead = 0
  for (let attempt = 0; ahead <= 0 && attempt < GATE_ATTEMPTS; attempt++) {
    await kill()
    ahead = await leaveRedisAhead(system, small, replica, kill)
  }
  await replica.start()
  return () => {
    const problems: string[] = []
    const during = touched(system, kills[0] ?? 0)
    const broken = during.filter((one) => one.replica === replica.name && one.status === 0)
    const inFlight = broken.filter((attempt) => kills.some((at) => attempt.sentAt < at && endOf(attempt) >= at))
    hit(problems, 'request was in flight', inFlight.length)
    hit(problems, 'signal was counted by Redis alone', ahead)
    // The end of one replica is no reason for the other to fail.
    const failed = during.filter((one) => one.replica === other.name && hasFailed(one))
    compare(problems, 'failures of the other replica', 0, failed.length)
    const notTaken = broken.length - inFlight.length
    return { figures: `${inFlight.length} broken off, ${notTaken} not taken, Redis left ${ahead} ahead`, problems }
  }
}

/** Starts the replica and ends it with requests that Redis has counted and Postgres never will; returns how many. */
async function leaveRedisAhead(system: Plain, small: Tenant, replica: RunningReplica, kill: () => Promise<void>) {
  const { ledger, redisUrls, servers, sql } = system
  // Before the row is held: on a busy machine it takes longer than the other replica's signals wait.
  const publish = await replica.launch()
  return sql.begin(async (on) => {
    const [row] = await on<[{ used: number }]>`
      select used from signal_usage where organisation_id = ${small.organisation} for update`
    // A new replica calls the gate; without a count in Redis it would read the usage from Postgres instead.
    await setGate(servers.redis.url, small, row.used)
    publish()
    const readAhead = async () => ((await readGate(redisUrls, small)) ?? 0) - row.used
    const waiting: Promise<Attempt>[] = []
    const giveUpAt = performance.now() + GATE_MS
    // A replica that has just started may take a while, or give Redis up once.
    while ((await readAhead()) <= 0 && performance.now() < giveUpAt) {
      waiting.push(...Array.from({ length: 20 }, () => send(ledger, replica, createSignal(small))))
      await Bun.sleep(100)
    }
    await kill()
    // Longer than the dead replica's statement waits for the row: it is given up, not written.
    await Bun.sleep(300)
    await Promise.all(waiting)
    return readAhead()
  }) as Promise<number>
}
