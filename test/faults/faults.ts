// The faults, each named after what must hold through it.
import { run } from '../program.ts'
import { compare, type Findings } from './checks.ts'
import { askRedis } from './clients.ts'
import { ask, wishFor } from './load.ts'
import type { Attempt, Replica, Tenant } from './post.ts'
import type { RunningReplica, Scene } from './scene.ts'

export type Fault = {
  name: string
  /** Does it under load, and answers how to judge it once every request has ended. */
  inject(scene: Scene, small: Tenant): Promise<() => Findings>
  /** The small organisation's limit when it is over. */
  limit?: number
}

export const SMALL_LIMIT = 300

/** Longer than the service may take to give Redis up, far shorter than Redis stands still. */
const WITHOUT_REDIS_MS = 1_000
/** The service waits this long for Redis, so a request that met a stopped one took at least about as long. */
const REDIS_PATIENCE_MS = 45

export const faults: Fault[] = [
  { name: 'kill -9 of a replica, three times: nothing acknowledged is lost', inject: killReplica },
  { name: 'SIGTERM of a replica: every request it has taken is answered', inject: terminateReplica },
  { name: 'Redis FLUSHALL: nobody notices', inject: flushRedis },
  { name: 'Redis killed and back empty: nobody notices', inject: killRedis },
  { name: 'Redis stopped for 2 s: nobody waits for it', inject: stopRedis },
  { name: 'Postgres ended at once and restarted: nothing acknowledged is lost', inject: crashPostgres },
  { name: 'Postgres stopped for 3 s: late or refused, never wrong', inject: (scene) => stopPostgres(scene, 3_000) },
  { name: 'Postgres stopped for 6 s: refused in time, never wrong', inject: (scene) => stopPostgres(scene, 6_000) },
  { name: 'every connection to Postgres ended, ten times: nothing is counted wrong', inject: endConnections },
  { name: 'plan changed by the command line: it holds from the next request on', inject: changePlan, limit: 500 },
]

const isFailure = ({ status }: Attempt) => status === 0 || status === 500
const endOf = ({ askedAt, ms }: Attempt) => askedAt + ms

/** Those that were under way at some time from then on. */
const touched = ({ ledger }: Scene, from: number) => ledger.attempts.filter((attempt) => endOf(attempt) >= from)

function hit(problems: string[], what: string, number: number): void {
  if (number === 0) problems.push(`the fault did not hit: no ${what}`)
}

async function killReplica(scene: Scene): Promise<() => Findings> {
  const [replica] = scene.replicas
  const kills: number[] = []
  for (let time = 0; time < 3; time++) {
    kills.push(performance.now())
    await replica.server.kill()
    await replica.start()
    await Bun.sleep(300)
  }
  return () => {
    const problems: string[] = []
    const broken = touched(scene, kills[0] ?? 0).filter(({ replica: name, status }) => name === 'A' && status === 0)
    const underWay = broken.filter((attempt) => kills.some((at) => attempt.askedAt < at && endOf(attempt) >= at))
    hit(problems, 'request was under way', underWay.length)
    return { figures: `${underWay.length} broken off, ${broken.length - underWay.length} not taken`, problems }
  }
}

async function terminateReplica(scene: Scene): Promise<() => Findings> {
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
  return () => {
    const problems: string[] = []
    const asked = scene.ledger.attempts.filter((one) => one.replica === replica.name && one.askedAt >= from)
    const lost = asked.filter(({ outcome }) => outcome === 'unanswered' || outcome === 'cut')
    const underWay = asked.filter((one) => one.askedAt < at && endOf(one) >= at && one.outcome === 'answered')
    const refused = asked.filter(({ outcome }) => outcome === 'refused').length
    hit(problems, 'request was under way', underWay.length)
    hit(problems, 'connection was refused', refused)
    compare(problems, 'exit status', 0, status)
    compare(problems, 'answers to requests half sent', Array(5).fill(201), halves)
    compare(
      problems,
      'taken and not answered',
      [],
      lost.map(({ wish, outcome, ms }) => [wish.id, outcome, ms]),
    )
    return {
      figures: `${underWay.length} answered on the way out, ${refused} not taken, ${lost.length} lost`,
      problems,
    }
  }
}

/** Without Redis the service goes on: no request fails, and none waits for it. */
function judgeRedisFault(scene: Scene, from: number, to: number, problems: string[]): string {
  const during = touched(scene, from).filter(({ askedAt }) => askedAt <= to)
  const recorded = during.filter(({ status }) => status === 201).length
  const slowest = Math.round(Math.max(...during.map(({ ms }) => ms)))
  hit(problems, 'signal was recorded meanwhile', recorded)
  compare(problems, 'requests failed for want of Redis', 0, during.filter(isFailure).length)
  if (slowest > WITHOUT_REDIS_MS) problems.push(`a request waited ${slowest} ms for Redis`)
  return `${recorded} recorded meanwhile, 0 failed, slowest of them ${slowest} ms`
}

async function flushRedis(scene: Scene): Promise<() => Findings> {
  const from = performance.now()
  let flushed = 0
  for (let time = 0; time < 3; time++) {
    await Bun.sleep(200)
    flushed += await askRedis(scene.redis.url, async (client) => {
      const [[, size] = []] = (await client.multi().dbsize().flushall().exec()) ?? []
      return size as number
    })
  }
  const to = performance.now()
  return () => {
    const problems: string[] = []
    hit(problems, 'key was flushed', flushed)
    return { figures: `${flushed} keys flushed, ${judgeRedisFault(scene, from, to, problems)}`, problems }
  }
}

const redisSeenBy = async ({ url }: Replica): Promise<string> =>
  ((await (await fetch(`${url}/readyz`)).json()) as { redis: string }).redis

async function killRedis(scene: Scene): Promise<() => Findings> {
  const from = performance.now()
  await scene.redis.crash('SIGKILL')
  await Bun.sleep(1_000)
  const seen = await Promise.all(scene.replicas.map(redisSeenBy))
  const to = performance.now()
  await scene.redis.restart()
  return () => {
    const problems: string[] = []
    compare(problems, 'what the replicas say of Redis meanwhile', ['down', 'down'], seen)
    return { figures: judgeRedisFault(scene, from, to, problems), problems }
  }
}

async function stopRedis(scene: Scene): Promise<() => Findings> {
  const from = performance.now()
  await scene.redis.whileStopped(
    async () => [],
    () => Bun.sleep(2_000),
  )
  const to = performance.now()
  return () => {
    const problems: string[] = []
    const met = touched(scene, from).filter(({ askedAt, ms }) => askedAt <= to && ms >= REDIS_PATIENCE_MS).length
    hit(problems, 'request met the stopped Redis', met)
    return { figures: `${met} met it, ${judgeRedisFault(scene, from, to, problems)}`, problems }
  }
}

/** The replicas stay up: whatever happens to Postgres, every request is answered. */
function judgePostgresFault(scene: Scene, from: number, delayedMs = Number.POSITIVE_INFINITY): Findings {
  const problems: string[] = []
  const during = touched(scene, from)
  const refused = during.filter(({ status }) => status === 500).length
  const delayed = during.filter(({ status, ms }) => status === 201 && ms >= delayedMs).length
  hit(problems, 'request was answered 500 or late', refused + delayed)
  compare(problems, 'requests without an answer', 0, during.filter(({ status }) => status === 0).length)
  return { figures: `${refused} answered 500, ${delayed} late`, problems }
}

async function crashPostgres(scene: Scene): Promise<() => Findings> {
  const from = performance.now()
  await scene.postgres.crash('SIGQUIT')
  await Bun.sleep(300)
  await scene.postgres.restart()
  return () => judgePostgresFault(scene, from)
}

async function stopPostgres(scene: Scene, ms: number): Promise<() => Findings> {
  const processes = async () => {
    const rows = await scene.sql<{ pid: number }[]>`select pid from pg_stat_activity`
    return rows.map(({ pid }) => pid)
  }
  const from = performance.now()
  await scene.postgres.whileStopped(processes, () => Bun.sleep(ms))
  return () => judgePostgresFault(scene, from, 1_000)
}

async function endConnections(scene: Scene): Promise<() => Findings> {
  const from = performance.now()
  let ended = 0
  for (let time = 0; time < 10; time++) {
    await Bun.sleep(100)
    const rows = await scene.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where backend_type = 'client backend' and pid <> pg_backend_pid()`
    ended += rows.length
  }
  return () => {
    const { figures, problems } = judgePostgresFault(scene, from)
    hit(problems, 'connection was ended', ended)
    return { figures: `${ended} connections ended, ${figures}`, problems }
  }
}

/** Down below what is used and up again, by an operator who knows of Redis and by one who does not. */
async function changePlan(scene: Scene, small: Tenant): Promise<() => Findings> {
  const { DATABASE_URL, REDIS_URL } = scene.settings
  const problems: string[] = []
  const asked = { refused: 0, recorded: 0 }

  async function setLimit(settings: Record<string, string>, limit: number): Promise<void> {
    const args = ['orgs', 'set-plan', small.org, 'free', '--monthly-limit', `${limit}`]
    const { status, stderr } = await run(args, { settings })
    compare(problems, 'exit status of set-plan', [0, ''], [status, stderr])
  }
  async function expectNext(status: 201 | 429, limit: number): Promise<void> {
    const next = scene.replicas.flatMap((replica: RunningReplica) => Array<RunningReplica>(8).fill(replica))
    const answers = await Promise.all(next.map((replica) => ask(scene.ledger, replica, wishFor(small, false))))
    asked[status === 201 ? 'recorded' : 'refused'] += answers.length
    const said = answers.map((one) => [one.status, status === 429 ? JSON.parse(one.text).error?.limit : limit])
    compare(
      problems,
      `after the limit became ${limit}`,
      answers.map(() => [status, limit]),
      said,
    )
  }

  for (const settings of [{ DATABASE_URL, REDIS_URL }, { DATABASE_URL }]) {
    await setLimit(settings, 100)
    await expectNext(429, 100)
    await setLimit(settings, 500)
    await expectNext(201, 500)
  }
  return () => {
    hit(problems, 'request was asked', asked.refused + asked.recorded)
    return { figures: `4 changes, then ${asked.refused} refused and ${asked.recorded} recorded`, problems }
  }
}
