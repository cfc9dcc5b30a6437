// What becomes of requests when the replica that has them ends.
import { readGate, setGate } from './clients.ts'
import { compare, endOf, type Findings, hit, touched } from './findings.ts'
import { ask, wishFor } from './load.ts'
import type { Attempt, Tenant } from './post.ts'
import type { Scene } from './scene.ts'

/** The end of one replica is no reason for the other to fail. */
function judgeOther(scene: Scene, from: number, problems: string[]): void {
  const [, other] = scene.replicas
  const failed = touched(scene, from).filter(
    ({ replica, status }) => replica === other.name && (status === 0 || status === 500),
  )
  compare(problems, 'failures of the other replica', 0, failed.length)
}

export async function killReplica(scene: Scene, small: Tenant): Promise<() => Findings> {
  const [replica] = scene.replicas
  const kills: number[] = []
  const kill = async () => {
    kills.push(performance.now())
    await replica.server.kill()
  }
  await kill()
  await replica.start()
  await Bun.sleep(300)
  const ahead = await leaveRedisAhead(scene, small, kill)
  await replica.start()
  return () => {
    const problems: string[] = []
    const broken = touched(scene, kills[0] ?? 0).filter((one) => one.replica === replica.name && one.status === 0)
    const underWay = broken.filter((attempt) => kills.some((at) => attempt.askedAt < at && endOf(attempt) >= at))
    hit(problems, 'request was under way', underWay.length)
    hit(problems, 'signal was counted by Redis alone', ahead)
    judgeOther(scene, kills[0] ?? 0, problems)
    const notTaken = broken.length - underWay.length
    return { figures: `${underWay.length} broken off, ${notTaken} not taken, Redis left ${ahead} ahead`, problems }
  }
}

/** Ends the replica with requests that Redis has counted and Postgres never will; answers how many. */
function leaveRedisAhead(scene: Scene, small: Tenant, kill: () => Promise<void>): Promise<number> {
  const { ledger, redis, replicas, sql } = scene
  return sql.begin(async (on) => {
    const [row] = await on<[{ used: number }]>`
      select used from signal_usage where organisation_id = ${small.organisation} for update`
    // A replica that is new asks Redis; what it finds there must be a count, or it asks Postgres instead.
    await setGate(redis.url, small.organisation, row.used)
    await kill()
    await replicas[0].start()
    const waiting = Array.from({ length: 20 }, () => ask(ledger, replicas[0], wishFor(small, false)))
    // Past the gate by then, and waiting for the row.
    await Bun.sleep(100)
    await kill()
    // Longer than the dead replica's statement waits for the row: it is given up, not written.
    await Bun.sleep(300)
    await Promise.all(waiting)
    return ((await readGate(redis.url, small.organisation)) ?? 0) - row.used
  }) as Promise<number>
}

export async function terminateReplica(scene: Scene): Promise<() => Promise<Findings>> {
  const [replica] = scene.replicas
  replica.exact = true
  const from = performance.now()
  const secondHalf = Promise.withResolvers<void>()
  const begun = Array.from({ length: 5 }, () =>
    ask(scene.ledger, replica, wishFor(scene.tenants[0] as Tenant, false), secondHalf.promise),
  )
  // Long enough for the requests on kept connections to have ended, and for those half sent to be taken.
  await Bun.sleep(300)
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
    const asked = scene.ledger.attempts.filter((one) => one.replica === replica.name && one.askedAt >= from)
    const silent = asked.filter(({ outcome }) => outcome === 'unanswered')
    const taken = await findTaken(scene, silent)
    const lost = [...asked.filter(({ outcome }) => outcome === 'cut'), ...taken]
    const underWay = asked.filter((one) => one.askedAt < at && endOf(one) >= at && one.outcome === 'answered')
    const refused = asked.filter(({ outcome }) => outcome === 'refused').length
    hit(problems, 'request was under way', underWay.length)
    hit(problems, 'connection was refused', refused)
    judgeOther(scene, from, problems)
    compare(problems, 'exit status', 0, status)
    compare(problems, 'answers to requests half sent', Array(5).fill(201), halves)
    compare(
      problems,
      'taken and not answered',
      [],
      lost.slice(0, 3).map(({ wish, outcome, ms }) => [wish.id, outcome, ms]),
    )
    const figures = [
      `${underWay.length} answered on the way out, ${refused} not taken`,
      `${silent.length - taken.length} closed with nothing recorded, ${lost.length} lost`,
    ]
    return { figures: figures.join(', '), problems }
  }
}

/**
 * Of the requests that ended in silence, those that the replica had taken: they are recorded, and nobody was told so
 * by another attempt. The rest came as the door closed: the kernel makes connections that a process never sees.
 */
async function findTaken({ ledger, sql }: Scene, silent: Attempt[]): Promise<Attempt[]> {
  const told = ledger.attempts.filter(({ status, replayed }) => status === 201 && !replayed)
  const toldIds = new Set(told.map(({ wish }) => wish.id))
  const rows = await sql<{ wish: string }[]>`
    select metadata ->> 'wish' as wish from signals
    where metadata ->> 'wish' = any (${silent.map(({ wish }) => wish.id)}::text[])`
  const recorded = new Set(rows.map(({ wish }) => wish))
  return silent.filter(({ wish }) => recorded.has(wish.id) && !toldIds.has(wish.id))
}
