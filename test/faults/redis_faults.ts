// Redis is never the truth: whatever happens to it, the service goes on.
import { withRedis } from '../services.ts'
import { type Cluster, whileStopped } from './cluster.ts'
import { compare, type Findings, hit, touched } from './findings.ts'
import { createSignalRequest, send } from './load.ts'
import type { Replica } from './post.ts'

/** Longer than the service may take to give Redis up, far shorter than Redis stands still. */
const WITHOUT_REDIS_MS = 1_000
/** The service waits this long for Redis, so a request that met a stopped one took at least about as long. */
const REDIS_PATIENCE_MS = 45

/** No request fails, and none waits for it. */
function assessRedisFault(cluster: Cluster, from: number, to: number, problems: string[]): string {
  const during = touched(cluster, from).filter(({ sentAt }) => sentAt <= to)
  const recorded = during.filter(({ status }) => status === 201).length
  const slowest = Math.round(Math.max(...during.map(({ ms }) => ms)))
  const failed = during.filter(({ status }) => status === 0 || status === 503).length
  hit(problems, 'signal was recorded meanwhile', recorded)
  compare(problems, 'requests failed for want of Redis', 0, failed)
  if (slowest > WITHOUT_REDIS_MS) problems.push(`a request waited ${slowest} ms for Redis`)
  return `${recorded} recorded meanwhile, ${failed} failed, slowest of them ${slowest} ms`
}

export async function flushRedis(cluster: Cluster): Promise<() => Findings> {
  const from = performance.now()
  let flushed = 0
  for (let time = 0; time < 3; time++) {
    await Bun.sleep(200)
    flushed += await withRedis(cluster.redis.url, async (client) => {
      const [[, size] = []] = (await client.multi().dbsize().flushall().exec()) ?? []
      return size as number
    })
  }
  const to = performance.now()
  return () => {
    const problems: string[] = []
    hit(problems, 'key was flushed', flushed)
    return { figures: `${flushed} keys flushed, ${assessRedisFault(cluster, from, to, problems)}`, problems }
  }
}

const redisSeenBy = async ({ url }: Replica): Promise<string> =>
  ((await (await fetch(`${url}/readyz`)).json()) as { redis: string }).redis

export async function killRedis(cluster: Cluster): Promise<() => Findings> {
  const from = performance.now()
  await cluster.redis.crash('SIGKILL')
  await Bun.sleep(1_000)
  const seen = await Promise.all(cluster.replicas.map(redisSeenBy))
  const to = performance.now()
  await cluster.redis.restart()
  return () => {
    const problems: string[] = []
    compare(problems, 'what the replicas say of Redis meanwhile', ['down', 'down'], seen)
    return { figures: assessRedisFault(cluster, from, to, problems), problems }
  }
}

export async function stopRedis(cluster: Cluster): Promise<() => Findings> {
  // The gate is called only for organisations close to their limits, or of which nothing is known, as of this one.
  const unknown = await cluster.createTenant(0)
  const from = performance.now()
  await whileStopped(cluster.redis, async () => {
    await Promise.all(cluster.replicas.map((one) => send(cluster.ledger, one, createSignalRequest(unknown, false))))
    await Bun.sleep(2_000)
  })
  const to = performance.now()
  return () => {
    const problems: string[] = []
    const met = touched(cluster, from).filter(({ sentAt, ms }) => sentAt <= to && ms >= REDIS_PATIENCE_MS).length
    hit(problems, 'request met the stopped Redis', met)
    return { figures: `${met} met it, ${assessRedisFault(cluster, from, to, problems)}`, problems }
  }
}
