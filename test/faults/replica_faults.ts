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
    ({ replica, status }) => replica === other.name && (status === 0 || status === 500),
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

export async function terminateReplica(cluster: Cluster): Promise<() => Promise<Findings>> {
  const [replica] = cluster.replicas
  replica.exact = true
  const from = performance.now()
  const secondHalf = Promise.withResolvers<void>()
  const firstHalves = Array.from({ length: 5 }, () => Promise.withResolvers<void>())
  const begun = firstHalves.map(({ resolve }) =>
    send(cluster.ledger, replica, createSignalRequest(cluster.tenants[0] as Tenant, false), {
      onFirstHalf: resolve,
      until: secondHalf.promise,
    }),
  )
  // Long enough for the requests on kept connections to have ended.
  await Bun.sleep(300)
  await Promise.all(firstHalves.map(({ promise }) => promise))
  // Connections are taken in the order in which they were made: once a later one is answered, those half sent are taken.
  for (let time = 0; time < 3; time++) await fetch(`${replica.url}/livez`, { headers: { connection: 'close' } })
  const at = performance.now()
  const stopped = replica.server.stop()
  await Bun.sleep(200)
  secondHalf.resolve()
  const status = await stopped
  const halves = (await Promise.all(begun)).map((attempt) => attempt.status)
  await replica.start()
  replica.exact = false
  return async () => {
    const problems: string[] = []
    const sent = cluster.ledger.attempts.filter((one) => one.replica === replica.name && one.sentAt >= from)
    const silent = sent.filter(({ outcome }) => outcome === 'unanswered')
    const taken = await findTaken(cluster, silent)
    const lost = [...sent.filter(({ outcome }) => outcome === 'cut'), ...taken]
    const underWay = sent.filter((one) => one.sentAt < at && endOf(one) >= at && one.outcome === 'answered')
    const refused = sent.filter(({ outcome }) => outcome === 'refused').length
    hit(problems, 'request was under way', underWay.length)
    hit(problems, 'connection was refused', refused)
    assessOther(cluster, from, problems)
    compare(problems, 'exit status', 0, status)
    compare(problems, 'answers to requests half sent', Array(5).fill(201), halves)
    compare(
      problems,
      'taken and not answered',
      [],
      lost.slice(0, 3).map(({ request, outcome, ms }) => [request.id, outcome, ms]),
    )
    const figures = [
      `${underWay.length} answered on the way out, ${refused} not taken`,
      `${silent.length - taken.length} closed with nothing recorded, ${lost.length} lost`,
    ]
    return { figures: figures.join(', '), problems }
  }
}

/**
 * The unanswered requests that the replica had accepted: they are recorded, and no other attempt was answered for them.
 * The rest came as the replica stopped to listen: the kernel accepts connections that a process never sees.
 */
async function findTaken({ ledger, sql }: Cluster, silent: Attempt[]): Promise<Attempt[]> {
  const acknowledged = ledger.attempts.filter(({ status, replayed }) => status === 201 && !replayed)
  const acknowledgedIds = new Set(acknowledged.map(({ request }) => request.id))
  const rows = await sql<{ request: string }[]>`
    select metadata ->> 'request' as request from signals
    where metadata ->> 'request' = any (${silent.map(({ request }) => request.id)}::text[])`
  const recorded = new Set(rows.map(({ request }) => request))
  return silent.filter(({ request }) => recorded.has(request.id) && !acknowledgedIds.has(request.id))
}
