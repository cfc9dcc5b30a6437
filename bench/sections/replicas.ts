import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import { measure } from '../measure.ts'
import type { Round } from '../plan.ts'
import { processorMs } from '../processes.ts'
import type { Row } from '../report.ts'
import type { Server } from '../server.ts'

/** Several processes on one port must not be slower than one, though they wait for the same rows and share the cores. */
export async function measureReplicas(context: Context): Promise<void> {
  const groups = { one: await start(context, 1), two: await start(context, 2), four: await start(context, 4) }
  const ratio = await compare(context, {
    one: (round) => measureGroup(context, groups.one, round),
    two: (round) => measureGroup(context, groups.two, round),
    four: (round) => measureGroup(context, groups.four, round),
  })
  await Promise.all(Object.values(groups).flatMap((servers) => servers.map((server) => server.stop())))
  context.report.targets.push(
    { name: 'two processes on one port ÷ one', value: ratio('two', 'one'), atLeast: 1 },
    { name: 'four processes on one port ÷ one', value: ratio('four', 'one'), atLeast: 1 },
  )
}

async function start({ operator, serve }: Context, processes: number): Promise<[Server, ...Server[]]> {
  const settings = { ...operator.settings, REUSE_PORT: 'on', METRICS_ADDRESS: '127.0.0.1:0' }
  const first = await serve(settings)
  const shared = { ...settings, PORT: new URL(first.url).port }
  return [first, ...(await Promise.all(Array.from({ length: processes - 1 }, () => serve(shared))))]
}

async function measureGroup(context: Context, servers: [Server, ...Server[]], round: Round): Promise<Row> {
  const usedMs = async () => (await Promise.all(servers.map(({ pid }) => processorMs(pid)))).reduce((a, b) => a + b)
  const before = await usedMs()
  const name = `POST signals, ${servers.length} on one port`
  const row = await measure(context, { name, servers: [servers[0]], connections: 256 }, round)
  const seconds = round.warmUpSeconds + round.seconds
  const microseconds = (1_000 * ((await usedMs()) - before)) / (row.requestsPerSecond * seconds)
  return { ...row, name: `${name}, ${microseconds.toFixed(0)} µs of processor time each` }
}
