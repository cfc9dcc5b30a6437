import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { openRedis, type Redis } from '../../src/db/redis.ts'
import { monthOf } from '../../src/lib/months.ts'
import { testInFullRun } from '../full.ts'
import { eventually } from '../program.ts'
import { startRedisCluster, startRedisWithSentinel } from '../redis_servers.ts'
import { startRedis, withRedis } from '../services.ts'

const month = monthOf(new Date('2100-11-15T12:00:00Z'))
const commandTimeoutMs = 500
/** The user that the documents tell operators to create. */
const documentedUser = /^ACL SETUSER (.*)$/m
  .exec(readFileSync('docs/operating.md', 'utf8'))?.[1]
  ?.split(' ') as string[]
const prefix = 'prompt-signals:'

const addDocumentedUser = ({ url }: { url: string }) =>
  withRedis(url, (on) => on.call('ACL', 'SETUSER', ...documentedUser))
const withUser = (url: string) => url.replace('://', '://prompt-signals:PASSWORD@')

function open(url: string) {
  const events: string[] = []
  const onAvailability = (isUp: boolean, reason: string) => events.push(isUp ? 'up' : `down: ${reason}`)
  const redis = openRedis(url, prefix, { commandTimeoutMs, onAvailability })
  return { redis, events }
}

/** Counts one more signal of an organisation, as the gate does. */
const take = (redis: Redis, organisationId: number) =>
  redis.raiseCounter(`signals:{${organisationId}}:${month.name}`, month.resetsAtSeconds)

/** Returns the count of an organisation after one more signal. It is set first. */
async function countAfter({ redis }: ReturnType<typeof open>, organisationId: number): Promise<unknown> {
  await redis.setCounter(`signals:{${organisationId}}:${month.name}`, 7, month.resetsAtSeconds)
  return take(redis, organisationId)
}

async function expectError(url: string, code: string, message: string, use: (redis: Redis) => unknown = () => {}) {
  const { redis, events } = open(url)
  await eventually(() => {
    use(redis)
    return redis.error
  }, code)
  expect(events.at(-1)).toContain(message)
  await redis.disconnect()
}

testInFullRun(
  'a lost master of a cluster affects only its organisations, until a replica takes over; a planned failover affects none',
  async () => {
    const cluster = await startRedisCluster()
    await Promise.all(cluster.servers.map(addDocumentedUser))
    const opened = open(withUser(cluster.url))
    const { redis, events } = opened
    await eventually(() => events, ['up'])
    const nodeOf = (id: number) => redis.nodeOf(`signals:{${id}}:`)
    const lostNode = new URL(cluster.first.url).host
    const ids = Array.from({ length: 60 }, (_, index) => index + 1)
    const [lost, kept] = [ids.filter((id) => nodeOf(id) === lostNode), ids.filter((id) => nodeOf(id) !== lostNode)]
    expect(new Set(ids.map(nodeOf)).size).toBe(3)
    for (const id of ids) expect(await countAfter(opened, id)).toBe(8)

    const readAll = (on: Redis) => ids.map((id) => on.setCounter(`{${id}}`, 1, month.resetsAtSeconds))
    await expectError(cluster.first.url, 'MOVED', 'MOVED', readAll)

    await cluster.first.crash('SIGKILL')
    const takeAll = (some: number[]) => Promise.all(some.map((id) => take(redis, id)))
    await eventually(async () => new Set(await takeAll(lost)), new Set([undefined]))
    for (let round = 1; round <= 20; round += 1) {
      expect(new Set(await takeAll(kept))).toEqual(new Set([8 + round]))
      expect(new Set(await takeAll(lost))).toEqual(new Set([undefined]))
    }
    await eventually(() => [events.length, typeof redis.error], [2, 'string'])

    await cluster.allowFailover()
    // The last writes to the lost master may not have reached the replica, so counts are set again.
    const countAll = (some: number[]) => Promise.all(some.map((id) => countAfter(opened, id)))
    const served = async () => [new Set(await countAll(lost)), redis.error]
    await eventually(served, [new Set([8]), undefined], 30_000)

    await cluster.first.restart()
    await addDocumentedUser(cluster.first)
    const infoOfFirst = () => withRedis(cluster.first.url, (on) => on.info())
    await eventually(async () => /master_link_status:up/.test(await infoOfFirst()), true)
    // Redis gives a planned failover up after five seconds, if the votes come too late.
    const isMaster = async () => /role:master/.test(await infoOfFirst())
    for (let polls = 0; !(await isMaster()); polls += 1) {
      if (polls % 300 === 0) await withRedis(cluster.first.url, (on) => on.cluster('FAILOVER'))
      await Bun.sleep(20)
    }
    const masterOf = ({ url }: { url: string }) =>
      withRedis(url, async (on) => (await on.cluster('SLOTS'))[0]?.[2]?.[1])
    for (const server of cluster.servers)
      await eventually(() => masterOf(server), Number(new URL(cluster.first.url).port))
    // A planned failover loses nothing, and nobody is told of it. The keys of several slots are in one write.
    expect(new Set(await takeAll(lost))).toEqual(new Set([9]))
    await redis.disconnect()
    await cluster.stop()
  },
)

test('behind sentinels the replica that they promote is used after the loss of the master', async () => {
  const servers = await startRedisWithSentinel('hunter2')
  const opened = open(servers.url)
  const { redis, events } = opened
  await eventually(() => events, ['up'])
  expect(await countAfter(opened, 1)).toBe(8)
  await servers.master.crash('SIGKILL')
  await eventually(() => events.length, 2)
  await eventually(() => countAfter(opened, 1), 8, 20_000)
  await eventually(() => redis.error, undefined)
  expect(events.join()).not.toContain('hunter2')
  await redis.disconnect()
  await servers.stop()
})

test('what the server rejects is the reason for which it is down', async () => {
  const server = await startRedis()
  await expectError('redis+sentinel://:hunter2@127.0.0.1:1/main', 'CLOSED', 'All sentinels are unreachable')
  const withoutOne = documentedUser.filter((word) => word !== '+incrby')
  await withRedis(server.url, (on) => on.call('ACL', 'SETUSER', ...withoutOne))
  await expectError(withUser(server.url), 'NOPERM', "can't run this command")
  await addDocumentedUser(server)
  const { redis, events } = open(withUser(server.url))
  await eventually(() => [events, redis.error], [['up'], undefined])
  await redis.disconnect()
  // Another database than the one that was asked for would be shared with its services.
  await expectError(`${server.url}/99`, 'ERR', 'DB index is out of range', (on) => expect(on.status).not.toBe('ready'))
  const inAnother = open(`${withUser(server.url)}/1`)
  await eventually(() => [inAnother.events, inAnother.redis.error], [['up'], undefined])
  await inAnother.redis.disconnect()
  await server.stop()
})

test('scripts that the server does not know, or no longer, run together with others', async () => {
  const server = await startRedis()
  const { redis, events } = open(server.url)
  await eventually(() => events, ['up'])
  const keys = ['a', 'b', 'c']
  for (const key of keys) await redis.setCounter(key, 1, month.resetsAtSeconds)
  const raiseAll = () => Promise.all(keys.map((key) => redis.raiseCounter(key, month.resetsAtSeconds)))
  expect(await raiseAll()).toEqual([2, 2, 2])
  expect(await raiseAll()).toEqual([3, 3, 3])
  await withRedis(server.url, (on) => on.script('FLUSH'))
  expect(await raiseAll()).toEqual([4, 4, 4])
  expect(redis.error).toBeUndefined()
  await redis.disconnect()
  await server.stop()
})
