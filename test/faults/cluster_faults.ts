// The faults of highly available servers, one after the other, and how long signals waited for each.
import { eventually } from '../program.ts'
import { withRedis } from '../services.ts'
import { compare, endOf, type Findings, touched } from './audit.ts'
import { fill, movesGate, SMALL_LIMIT } from './checks.ts'
import type { Fault } from './faults.ts'
import { type Attempt, hasFailed, prefill, type Replica, type Tenant } from './load.ts'
import { type Node, SETTLE_MS } from './patroni.ts'
import { type Clustered, gateKey } from './system.ts'

const kill = { name: 'kill -9 of the Postgres leader and its Patroni', inject: killLeader }
const switchover = { name: 'planned switchover of Postgres', inject: switchOver }
const killMaster = { name: 'kill -9 of a Redis master', inject: killRedisMaster }

export const clusterFaults: Fault<Clustered>[] = [kill, switchover, kill, killMaster, switchover, kill]

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`

/** Through everything the replicas answer every request. */
function assess(system: Clustered, from: number, figures: string, problems: string[] = []): Findings {
  const during = touched(system, from)
  const unanswered = during.filter(({ status }) => status === 0).length
  compare(problems, 'requests without an answer', 0, unanswered)
  return { figures: `${figures}; ${during.filter(hasFailed).length} answered 503`, problems }
}

async function killLeader(system: Clustered): Promise<() => Findings> {
  const { figures, from, leader } = await replaceLeader(system, (node) => node.kill())
  await leader.restart()
  await system.servers.database.awaitWhole()
  return () => assess(system, from, figures)
}

async function switchOver(system: Clustered): Promise<() => Findings> {
  const { figures, from } = await replaceLeader(system, async ({ api, name }) => {
    const answer = await fetch(`${api}/switchover`, { method: 'POST', body: JSON.stringify({ leader: name }) })
    if (answer.status !== 200) throw new Error(`switchover: ${answer.status} ${await answer.text()}`)
  })
  await system.servers.database.awaitWhole()
  return () => assess(system, from, figures)
}

/** Waits until another node leads, and until both replicas have acknowledged a signal that was sent after that. */
async function replaceLeader(system: Clustered, replace: (leader: Node) => Promise<unknown>) {
  const { replicas, servers } = system
  const leader = (await servers.database.findLeader()) as Node
  const from = performance.now()
  await replace(leader)
  const isReplaced = async () => ![leader, undefined].includes(await servers.database.findLeader())
  await eventually(isReplaced, true, SETTLE_MS)
  const at = performance.now()
  const acknowledgedBy = ({ name }: Replica): Attempt[] =>
    touched(system, from).filter(({ replica, status }) => replica === name && status === 201)
  const isServed = () => replicas.every((one) => acknowledgedBy(one).some(({ sentAt }) => sentAt > at))
  await eventually(isServed, true, SETTLE_MS)
  const pauses = replicas.map((one) => `${seconds(longestPause(from, acknowledgedBy(one)))} (${one.name})`)
  return { figures: `new leader after ${seconds(at - from)}; first 201 after ${pauses.join(' and ')}`, from, leader }
}

/** From the last 201 before the interruption to the first one after it: a planned switchover begins with a delay. */
function longestPause(from: number, acknowledged: Attempt[]): number {
  const times = [from, ...acknowledged.map(endOf).sort((a, b) => a - b)]
  return Math.max(...times.slice(1).map((time, index) => time - (times[index] as number)))
}

/** No caller notices, and the replica that takes over keeps refused signals away from Postgres again. */
async function killRedisMaster(system: Clustered): Promise<() => Findings> {
  const { ledger, replicas, servers } = system
  const { first } = servers.redis
  /** One whose count is on the master that will be lost: the others answer that the key has moved. */
  async function createDoomed(): Promise<Tenant> {
    const tenant = await system.createTenant(SMALL_LIMIT)
    const isThere = withRedis(first.url, (on) => on.exists(gateKey(tenant.organisation)))
    return isThere.then(() => tenant, createDoomed)
  }
  const doomed = await createDoomed()
  await prefill(ledger, replicas[0] as Replica, doomed, SMALL_LIMIT)
  const { figures, problems } = await fill(system, doomed)
  const from = performance.now()
  await first.crash('SIGKILL')
  for (const one of replicas) await eventually(() => movesGate(system, one, doomed), true, SETTLE_MS)
  const took = performance.now() - from
  const during = touched(system, from)
  compare(problems, 'requests failed for want of Redis', 0, during.filter(hasFailed).length)
  const pause = longestPause(
    from,
    during.filter(({ status }) => status === 201),
  )
  await first.restart()
  const times = `first 201 after ${seconds(pause)}; gate used again after ${seconds(took)}`
  return () => assess(system, from, `${figures}; ${times}`, problems)
}
