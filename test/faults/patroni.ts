// Three Postgres nodes under Patroni, one of them a synchronous standby, the etcd in which they agree on their leader, and
// HAProxy in front of that.
import { writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { farTimeZones } from '../environment.ts'
import { eventually } from '../program.ts'
import { clusterPrograms, findOrInstall } from '../programs.ts'
import { withPostgres } from '../services.ts'
import { findFreePort, type Server, startThrowaway } from '../throwaway.ts'
import type { Cleanups } from './system.ts'

export type Node = Awaited<ReturnType<typeof startNode>>

/** Seconds. The leader that dies keeps its lease for `ttl`; a shorter one is lost by a leader on a busy machine. */
const TIMES = { ttl: 10, loop_wait: 1, retry_timeout: 4 }
/** A new leader confirms nothing without a standby: one that was starved for longer than `ttl` may lead again. */
const SYNCHRONOUS = { synchronous_mode: true, synchronous_mode_strict: true }
/** A standby looks for the new leader this often; five seconds is the default. */
const RECONNECT = '500ms'
/** For a failover, or for a node to follow the new leader, on the slowest machine. */
export const SETTLE_MS = 120_000

const get = (url: string) => fetch(url, { signal: AbortSignal.timeout(2_000) })

export async function startPostgresCluster(cleanups: Cleanups) {
  const [postgresFolder = '', patroni = '', etcdPath = '', haproxyPath = ''] = await findOrInstall(clusterPrograms)
  const etcd = await startEtcd(etcdPath)
  cleanups.push(etcd.stop)
  const scope = basename(etcd.url)
  const nodes: Node[] = []
  cleanups.push(() => Promise.all(nodes.map(({ stop }) => stop())))
  for (const name of ['one', 'two', 'three']) {
    nodes.push(await startNode(name, scope, etcd, patroni, postgresFolder))
  }

  const isLeader = ({ api }: Node) =>
    get(`${api}/primary`).then(
      ({ status }) => status === 200,
      () => false,
    )
  async function findLeader(): Promise<Node | undefined> {
    const answers = await Promise.all(nodes.map(isLeader))
    return nodes.find((_, index) => answers[index])
  }
  /** A leader, a synchronous standby and another one, of the same history: the next leader loses nothing. */
  async function describe(): Promise<string> {
    type Member = { role: string; state: string; timeline?: number }
    const answer = await get(`${(await findLeader())?.api}/cluster`).catch(() => undefined)
    const { members = [] } = ((await answer?.json()) ?? {}) as { members?: Member[] }
    const timelines = new Set(members.map(({ timeline }) => timeline))
    const states = members.map(({ role, state }) => `${role} ${state === 'streaming' ? 'running' : state}`)
    return [...states.sort(), `timelines ${timelines.size}`].join()
  }
  const awaitWhole = () =>
    eventually(describe, 'leader running,replica running,sync_standby running,timelines 1', SETTLE_MS)
  await awaitWhole()

  const haproxy = await startHaproxy(haproxyPath, nodes, scope)
  cleanups.push(haproxy.stop)
  return {
    nodes,
    hostsUrl: `postgres://postgres@${nodes.map(({ address }) => address).join()}/postgres`,
    proxyUrl: haproxy.url,
    findLeader,
    awaitWhole,
  }
}

function startHaproxy(program: string, nodes: Node[], scope: string): Promise<Server> {
  return startThrowaway((folder) => {
    const file = join(folder, 'haproxy.cfg')
    const servers = nodes.map(({ name, address, api }) => `  server ${name} ${address} check port ${new URL(api).port}`)
    const configOf = (port: number) => `defaults
  mode tcp
  timeout connect 2s
  # Otherwise a connection to a leader that has just left waits for seconds.
  retries 0
  timeout client 1h
  timeout server 1h
listen postgres
  bind 127.0.0.1:${port}
  option httpchk GET /primary
  http-check expect status 200
  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
${servers.join('\n')}
`
    return {
      name: 'HAProxy',
      command: (port) => {
        writeFileSync(file, configOf(port))
        return [program, '-db', '-f', file]
      },
      url: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
      // Patroni gives every node the name of its cluster.
      folderOf: (url) =>
        withPostgres(url, async (sql) => {
          const [row] = await sql`select current_setting('cluster_name') as name`
          return row?.name === scope ? folder : ''
        }),
      stopSignal: 'SIGTERM',
    }
  })
}

async function startEtcd(program: string): Promise<Server> {
  const peer = `http://127.0.0.1:${await findFreePort()}`
  // Its version 3.4 runs there only when it is told to.
  const prefix = process.arch === 'arm64' ? ['env', 'ETCD_UNSUPPORTED_ARCH=arm64'] : []
  return startThrowaway((folder) => {
    const name = basename(folder)
    const url = (port: number) => `http://127.0.0.1:${port}`
    const options = (port: number) => ({
      name,
      'data-dir': join(folder, 'data'),
      'log-level': 'error',
      'listen-client-urls': url(port),
      'advertise-client-urls': url(port),
      'listen-peer-urls': peer,
      'initial-advertise-peer-urls': peer,
      'initial-cluster': `${name}=${peer}`,
    })
    return {
      name: 'etcd',
      command: (port) => [
        ...prefix,
        program,
        ...Object.entries(options(port)).map(([key, value]) => `--${key}=${value}`),
      ],
      url,
      folderOf: async (at) => {
        const answer = await fetch(`${at}/v3/cluster/member/list`, { method: 'POST', body: '{}' })
        const { members } = (await answer.json()) as { members: { name: string }[] }
        return members[0]?.name === name ? folder : ''
      },
      stopSignal: 'SIGTERM',
    }
  })
}

async function startNode(name: string, scope: string, etcd: Server, patroni: string, postgresFolder: string) {
  const address = `127.0.0.1:${await findFreePort()}`
  let data = ''
  let isStopped = false
  const parameters = {
    max_connections: 200,
    timezone: farTimeZones.postgres,
    wal_keep_size: '256MB',
    wal_retrieve_retry_interval: RECONNECT,
  }
  const userOf = (username: string) => ({ username, password: 'cluster' })
  const configOf = (folder: string, api: string) => ({
    scope,
    name,
    restapi: { listen: api, connect_address: api },
    etcd3: { host: new URL(etcd.url).host },
    bootstrap: {
      dcs: { ...TIMES, ...SYNCHRONOUS, postgresql: { use_pg_rewind: true, parameters } },
      initdb: [{ encoding: 'UTF8' }, { locale: 'C' }, 'data-checksums', 'no-sync'],
    },
    postgresql: {
      listen: address,
      connect_address: address,
      data_dir: data,
      bin_dir: postgresFolder,
      pgpass: join(folder, 'pgpass'),
      authentication: { superuser: userOf('postgres'), replication: userOf('standby') },
      parameters: { unix_socket_directories: folder },
      pg_hba: ['local all all trust', 'host all,replication all 127.0.0.1/32 trust'],
    },
  })
  const server = await startThrowaway((folder) => {
    data = join(folder, 'data')
    const file = join(folder, 'patroni.yml')
    return {
      name: 'Patroni',
      command: (port) => {
        // JSON is YAML.
        writeFileSync(file, JSON.stringify(configOf(folder, `127.0.0.1:${port}`)))
        return [patroni, file]
      },
      url: (port) => `http://127.0.0.1:${port}`,
      folderOf: async (at) => {
        const { patroni } = (await (await get(`${at}/patroni`)).json()) as { patroni: { scope: string } }
        return patroni.scope === scope ? folder : ''
      },
      stopSignal: 'SIGKILL',
    }
  })

  /** Ends Patroni first, which would start Postgres again, with a copy or rewind that it may be running. */
  async function end(signal: 'SIGKILL' | 'SIGQUIT'): Promise<void> {
    process.kill(-server.pid(), 'SIGKILL')
    await server.crash('SIGKILL')
    const pid = Number(/^\d+/.exec(await readFile(join(data, 'postmaster.pid'), 'utf8')))
    // The file of a Postgres that was killed names a process that may be another one now.
    const isPostgres = () => readFile(`/proc/${pid}/cmdline`, 'utf8').then((line) => line.includes(data))
    if (await isPostgres()) process.kill(pid, signal)
    await eventually(() => isPostgres().catch(() => false), false, SETTLE_MS)
  }
  return {
    name,
    address,
    api: server.url,
    kill: () => end('SIGKILL'),
    async restart() {
      if (!isStopped) await server.restart()
    },
    async stop() {
      isStopped = true
      // Rejects if one of them has ended.
      await end('SIGQUIT').catch(() => {})
      await server.stop()
    },
  }
}
