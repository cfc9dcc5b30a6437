import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import { createTenants, unreachableLimit } from '../fixtures.ts'
import type { Request } from '../load.ts'
import { measure } from '../measure.ts'
import type { Round } from '../plan.ts'
import { processorMs } from '../processes.ts'
import type { Row } from '../report.ts'
import type { Server } from '../server.ts'

type Group = [Server, ...Server[]]

/**
 * Several processes on one port. On a local disk they share the cores with Postgres, and write smaller batches: the
 * processor time of a signal says what each costs. With the commits of a synchronous standby, they must not keep each
 * other waiting.
 */
export async function measureReplicas(context: Context): Promise<void> {
  const groups = { one: await start(context, 1), two: await start(context, 2), four: await start(context, 4) }
  const measureAll = (name: string, requests: Request[]) => {
    const measureOne = (group: Group) => (round: Round) => measureGroup(context, group, round, name, requests)
    return compare(context, {
      one: measureOne(groups.one),
      two: measureOne(groups.two),
      four: measureOne(groups.four),
    })
  }
  await measureAll('', context.requests)
  const shape = { organisations: 1, promptsEach: 10, monthlyLimit: unreachableLimit }
  const ofOneOrganisation = await createTenants(context.database, shape)
  await delayCommits(context, 10_000)
  const ratio = await measureAll(', commits of 10 ms, one organisation', ofOneOrganisation)
  await delayCommits(context, 0)
  await Promise.all(Object.values(groups).flatMap((servers) => servers.map((server) => server.stop())))
  context.report.targets.push(
    { name: 'two processes on one port ÷ one, commits of 10 ms', value: ratio('two', 'one'), atLeast: 0.9 },
    { name: 'four processes on one port ÷ one, commits of 10 ms', value: ratio('four', 'one'), atLeast: 0.9 },
  )
}

async function start({ operator, serve }: Context, processes: number): Promise<Group> {
  const settings = { ...operator.settings, REUSE_PORT: 'on', METRICS_ADDRESS: '127.0.0.1:0' }
  const first = await serve(settings)
  const shared = { ...settings, PORT: new URL(first.url).port }
  return [first, ...(await Promise.all(Array.from({ length: processes - 1 }, () => serve(shared))))]
}

/** Makes each commit take this much longer, as a synchronous standby does. */
async function delayCommits({ database: { sql } }: Context, microseconds: number): Promise<void> {
  await sql.dynamic(`alter system set commit_delay = ${microseconds}`)
  await sql.dynamic('alter system set commit_siblings = 0')
  await sql.dynamic('select pg_reload_conf()')
}

async function measureGroup(
  context: Context,
  servers: Group,
  round: Round,
  of: string,
  requests: Request[],
): Promise<Row> {
  const usedMs = async () => (await Promise.all(servers.map(({ pid }) => processorMs(pid)))).reduce((a, b) => a + b)
  const before = await usedMs()
  const name = `POST signals, ${servers.length} on one port${of}`
  const row = await measure(context, { name, servers: [servers[0]], connections: 256, requests }, round)
  const seconds = round.warmUpSeconds + round.seconds
  const microseconds = (1_000 * ((await usedMs()) - before)) / (row.requestsPerSecond * seconds)
  return { ...row, name: `${name}, ${microseconds.toFixed(0)} µs of processor time each` }
}
