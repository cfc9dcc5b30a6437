// What happens to the servers, one after the other, and how long signals waited for it.
import { fill, movesGate } from '../faults/checks.ts'
import { SMALL_LIMIT } from '../faults/faults.ts'
import { compare, endOf, type Findings } from '../faults/findings.ts'
import type { Attempt, Replica } from '../faults/post.ts'
import { eventually } from '../program.ts'
import type { Server } from '../throwaway.ts'
import { type Node, SETTLE_MS } from './patroni.ts'
import type { System } from './system.ts'

export type Event = { name: string; happen(system: System): Promise<Findings> }

const kill: Event = { name: 'kill -9 of the Postgres leader and its Patroni', happen: killLeader }
const switchover: Event = { name: 'planned switchover of Postgres', happen: switchOver }

export const events: Event[] = [
  kill,
  switchover,
  kill,
  { name: 'kill -9 of a Redis master', happen: killRedisMaster },
  switchover,
  kill,
]

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`

async function killLeader(system: System): Promise<Findings> {
  const { figures, leader } = await replaceLeader(system, (node) => node.kill())
  await leader.restart()
  await system.database.awaitWhole()
  return { figures, problems: [] }
}

async function switchOver(system: System): Promise<Findings> {
  const { figures } = await replaceLeader(system, async ({ api, name }) => {
    const answer = await fetch(`${api}/switchover`, { method: 'POST', body: JSON.stringify({ leader: name }) })
    if (answer.status !== 200) throw new Error(`switchover: ${answer.status} ${await answer.text()}`)
  })
  await system.database.awaitWhole()
  return { figures, problems: [] }
}

/** Waits until another node leads, and until both replicas have acknowledged a signal that was sent after that. */
async function replaceLeader({ database, ledger, replicas }: System, replace: (leader: Node) => Promise<unknown>) {
  const leader = (await database.findLeader()) as Node
  const [first, from] = [ledger.attempts.length, performance.now()]
  await replace(leader)
  const isReplaced = async () => ![leader, undefined].includes(await database.findLeader())
  await eventually(isReplaced, true, SETTLE_MS)
  const at = performance.now()
  const acknowledgedBy = ({ name }: Replica): Attempt[] =>
    ledger.attempts.slice(first).filter(({ replica, status }) => replica === name && status === 201)
  const isServed = () => replicas.every((one) => acknowledgedBy(one).some(({ sentAt }) => sentAt > at))
  await eventually(isServed, true, SETTLE_MS)
  const pauses = replicas.map((one) => `${seconds(longestPause(from, acknowledgedBy(one)))} (${one.name})`)
  return { figures: `new leader after ${seconds(at - from)}; first 201 after ${pauses.join(' and ')}`, leader }
}

/** From the last 201 before the interruption to the first one after it: a planned switchover begins with a delay. */
function longestPause(from: number, acknowledged: Attempt[]): number {
  const times = [from, ...acknowledged.map(endOf).sort((a, b) => a - b)]
  return Math.max(...times.slice(1).map((time, index) => time - (times[index] as number)))
}

/** No caller notices, and the replica that takes over keeps refused signals away from Postgres again. */
async function killRedisMaster(system: System): Promise<Findings> {
  const { ledger, redis, replicas, small } = system
  const { figures, problems } = await fill(system, small, SMALL_LIMIT)
  const [first, from] = [ledger.attempts.length, performance.now()]
  await redis.first.crash('SIGKILL')
  const successor = redis.servers.at(-1) as Server
  for (const one of replicas) await eventually(() => movesGate(ledger, successor, one, small), true, SETTLE_MS)
  const took = performance.now() - from
  const during = ledger.attempts.slice(first)
  const failed = during.filter(({ status }) => status === 0 || status === 503)
  compare(problems, 'requests failed for want of Redis', 0, failed.length)
  const pause = longestPause(
    from,
    during.filter(({ status }) => status === 201),
  )
  await redis.first.restart()
  return { figures: `${figures}; first 201 after ${seconds(pause)}; gate used again after ${seconds(took)}`, problems }
}
