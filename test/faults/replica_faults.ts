// What becomes of requests when the replica that has them ends.
import { type Cluster, readGate, setGate } from './cluster.ts'
import { compare, endOf, type Findings, hit, touched } from './findings.ts'
import { createSignalRequest, send } from './load.ts'
import type { Attempt, Tenant } from './post.ts'

/** The row is held so long at most, far less than the other replica's signals wait for it before they fail. */
const GATE_MS = 2_000
/** A replica on a busy machine may give Redis up before it was counted there: then another one is tried. */
const GATE_ATTEMPTS = 5

/** The end of one replica is no reason for the other to fail. */
function assessOther(cluster: Cluster, from: number, problems: string[]): void {
  const [, other] = cluster.replicas
  const failed = touched(cluster, from).filter(
    ({ replica, status }) => replica === other.name && (status === 0 || status === 503),
  )
  compare(problems, 'failures of the other replica', 0, failed.length)
}

export async function killReplica(cluster: Cluster, small: Tenant): Promise<() => Findings> {
  const [replica] = cluster.replicas
  const kills: number[] = []
  const kill = async () => {
    kills.push(performance.now())
    await replica.server.kill()
  }
  await kill()
  await replica.start()
  await Bun.sleep(300)
  let ahead = 0
  for (let attempt = 0; ahead <= 0 && attempt < GATE_ATTEMPTS; attempt++) {
    await kill()
    ahead = await leaveRedisAhead(cluster, small, kill)
  }
  await replica.start()
  return () => {
    const problems: string[] = []
    const broken = touched(cluster, kills[0] ?? 0).filter((one) => one.replica === replica.name && one.status === 0)
    const underWay = broken.filter((attempt) => kills.some((at) => attempt.sentAt < at && endOf(attempt) >= at))
    hit(problems, 'request was under way', underWay.length)
    hit(problems, 'signal was counted by Redis alone', ahead)
    assessOther(cluster, kills[0] ?? 0, problems)
    const notTaken = broken.length - underWay.length
    return { figures: `${underWay.length} broken off, ${notTaken} not taken, Redis left ${ahead} ahead`, problems }
  }
}

/** Starts the replica and ends it with requests that Redis has counted and Postgres never will; returns how many. */
async function leaveRedisAhead(cluster: Cluster, small: Tenant, kill: () => Promise<void>): Promise<number> {
  const { ledger, redis, replicas, sql } = cluster
  // Before the row is held: on a busy machine it takes longer than the other replica's signals wait.
  const publish = await replicas[0].launch()
  return sql.begin(async (on) => {
    const [row] = await on<[{ used: number }]>`
      select used from signal_usage where organisation_id = ${small.organisation} for update`
    // A new replica calls the gate; without a count in Redis it would read the usage from Postgres instead.
    await setGate(redis.url, small.organisation, row.used)
    publish()
    const readAhead = async () => ((await readGate(redis.url, small.organisation)) ?? 0) - row.used
    const waiting: Promise<Attempt>[] = []
    const giveUpAt = performance.now() + GATE_MS
    // A replica that has just started may take a while, or give Redis up once.
    while ((await readAhead()) <= 0 && performance.now() < giveUpAt) {
      waiting.push(...Array.from({ length: 20 }, () => send(ledger, replicas[0], createSignalRequest(small, false))))
      await Bun.sleep(100)
    }
    await kill()
    // Longer than the dead replica's statement waits for the row: it is given up, not written.
    await Bun.sleep(300)
    await Promise.all(waiting)
    return readAhead()
  }) as Promise<number>
}
