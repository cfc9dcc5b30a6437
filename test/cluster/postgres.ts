// Three Postgres nodes, one of them a synchronous standby, and HAProxy in front of the leader.
import { writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import type { Cleanups } from '../faults/cluster.ts'
import { eventually } from '../program.ts'
import { clusterPrograms, findOrInstall } from '../programs.ts'
import { withPostgres } from '../services.ts'
import { type Server, startThrowaway } from '../throwaway.ts'
import { get, type Node, SETTLE_MS, startEtcd, startNode } from './patroni.ts'

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
