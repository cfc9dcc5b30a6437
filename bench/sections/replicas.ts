import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import { measure } from '../measure.ts'
import type { Round } from '../plan.ts'
import { processorMs } from '../processes.ts'
import type { Row } from '../report.ts'

const connections = 256

/** Several processes on one port must not be slower than one, though they wait for the same rows and share the cores. */
export async function measureReplicas(context: Context): Promise<void> {
  const { report } = context
  const ratio = await compare(context, {
    one: (round) => measureProcesses(context, 1, round),
    two: (round) => measureProcesses(context, 2, round),
    four: (round) => measureProcesses(context, 4, round),
  })
  report.targets.push({ name: 'two processes on one port ÷ one', value: ratio('two', 'one'), atLeast: 1 })
}

async function measureProcesses(context: Context, processes: number, round: Round): Promise<Row> {
  const settings = { ...context.operator.settings, REUSE_PORT: 'on', METRICS_ADDRESS: '127.0.0.1:0' }
  const first = await context.serve(settings)
  const others = { ...settings, PORT: new URL(first.url).port }
  const servers = [first, ...(await Promise.all(Array.from({ length: processes - 1 }, () => context.serve(others))))]
  const usedMs = async () => (await Promise.all(servers.map(({ pid }) => processorMs(pid)))).reduce((a, b) => a + b)
  const before = await usedMs()
  const name = `POST signals, ${processes} on one port`
  const row = await measure(context, { name, servers: [first], connections }, { ...round, warmUpSeconds: 0 })
  const microseconds = (1_000 * ((await usedMs()) - before)) / (row.requestsPerSecond * round.seconds)
  await Promise.all(servers.map((server) => server.stop()))
  return { ...row, name: `${name}, ${microseconds.toFixed(0)} µs of processor time each` }
}
