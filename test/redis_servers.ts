// Redis in the two ways that survive the loss of a server.
import { chmodSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Redis } from 'ioredis'
import { eventually } from './program.ts'
import { findOrInstall, redisProgram } from './programs.ts'
import { redisRecipe, startRedis, withRedis } from './services.ts'
import { type Recipe, type Server, startThrowaway } from './throwaway.ts'

const portOf = ({ url }: Server) => Number(new URL(url).port)

/** Three masters and a replica of the first, which takes over only when it is told that it may. */
export async function startRedisCluster() {
  // Without the last, a replica that lost its master long ago does not take over.
  const settings = [
    '--cluster-enabled',
    'yes',
    '--cluster-node-timeout',
    '1000',
    '--cluster-replica-validity-factor',
    '0',
  ]
  const servers = await Promise.all(
    Array.from({ length: 4 }, () => startRedis(...settings, '--cluster-require-full-coverage', 'no')),
  )
  const [first, , , replica] = servers as [Server, Server, Server, Server]
  const ask = <T>(server: Server, use: (client: Redis) => Promise<T>) => withRedis(server.url, use)
  const slots = [0, 5_461, 10_923, 16_384]
  for (const [index, server] of servers.slice(0, 3).entries()) {
    await ask(server, async (client) => {
      await client.cluster('ADDSLOTSRANGE', slots[index] as number, (slots[index + 1] as number) - 1)
      await client.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1)
    })
  }
  for (const server of servers.slice(1))
    await ask(first, (client) => client.cluster('MEET', '127.0.0.1', portOf(server)))
  const knownTo = (server: Server) =>
    ask(server, async (client) => String(await client.cluster('NODES')).split('connected').length - 1)
  for (const server of servers) await eventually(() => knownTo(server), 4)
  const id = await ask(first, (client) => client.cluster('MYID'))
  await ask(replica, async (client) => {
    await client.config('SET', 'cluster-replica-no-failover', 'yes')
    await client.cluster('REPLICATE', id)
  })
  await eventually(() => ask(replica, async (client) => /master_link_status:up/.test(await client.info())), true)
  for (const server of servers) {
    await eventually(() => ask(server, async (client) => /cluster_state:ok/.test(await client.cluster('INFO'))), true)
  }
  return {
    servers,
    first,
    url: `redis+cluster://${servers.map((server) => `127.0.0.1:${portOf(server)}`).join(',')}`,
    allowFailover: () => ask(replica, (client) => client.config('SET', 'cluster-replica-no-failover', 'no')),
    stop: () => Promise.all(servers.map(({ stop }) => stop())),
  }
}

/** A sentinel with these settings. */
export function sentinelRecipe(program: string, folder: string, settings: string[]): Recipe {
  const file = join(folder, 'sentinel.conf')
  writeFileSync(file, settings.map((line) => `sentinel ${line}`).join('\n'))
  // It writes there what it learns, as another user.
  chmodSync(file, 0o666)
  const { url, stopSignal } = redisRecipe(program, folder)
  return {
    name: 'Redis Sentinel',
    command: (port) => [program, file, '--sentinel', '--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder],
    url,
    stopSignal,
    folderOf: (at) =>
      withRedis(at, async (client) => dirname(/config_file:(.*?)\r/.exec(await client.info())?.[1] ?? '')),
  }
}

/** A master and a replica with a password, and one sentinel whose word is enough. */
export async function startRedisWithSentinel(password: string) {
  const withPassword = async (...settings: string[]) => {
    const server = await startRedis(...settings)
    await withRedis(server.url, (client) => client.config('SET', 'masterauth', password))
    return server
  }
  const master = await withPassword()
  const replica = await withPassword('--replicaof', `127.0.0.1 ${portOf(master)}`)
  await eventually(() => withRedis(replica.url, async (on) => /master_link_status:up/.test(await on.info())), true)
  for (const { url } of [master, replica]) await withRedis(url, (on) => on.config('SET', 'requirepass', password))
  const [program = ''] = await findOrInstall([redisProgram])
  const lines = [
    `monitor main 127.0.0.1 ${portOf(master)} 1`,
    `auth-pass main ${password}`,
    'down-after-milliseconds main 500',
  ]
  const sentinel = await startThrowaway((folder) => sentinelRecipe(program, folder, lines))
  const sees = (part: RegExp) => withRedis(sentinel.url, async (client) => part.test(await client.info()))
  await eventually(() => sees(/master0:.*status=ok.*slaves=1/), true, 20_000)
  return {
    master,
    url: `redis+sentinel://:${password}@127.0.0.1:${portOf(sentinel)}/main`,
    stop: () => Promise.all([sentinel, replica, master].map(({ stop }) => stop())),
  }
}
