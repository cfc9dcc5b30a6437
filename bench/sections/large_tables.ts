import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import { createTenants, promptOf, unreachableLimit } from '../fixtures.ts'
import type { Request } from '../load.ts'
import { applyOpenLoad } from '../open_loop.ts'
import type { Round } from '../plan.ts'
import { runProgram } from '../processes.ts'
import type { Row } from '../report.ts'
import type { Server } from '../server.ts'
import { insertSignals, since, until } from './signal_reads.ts'

/** A bulk load, and how much of it is purged. */
const [maxSignals, maxPurged] = [7_600_000, 2_000_000]
/** Signals of another organisation that arrive at random, far below the capacity. */
const quietLoad = { connections: 16, rate: 200, status: 201 }

/** Counts a bulk load, then purges it part by part while another organisation records signals. */
export async function measureLargeTables(context: Context): Promise<void> {
  const { database, report, plan, operator } = context
  const number = Math.min(maxSignals, plan.signalsToRead)
  const shape = { organisations: 2, promptsEach: 1, monthlyLimit: unreachableLimit }
  const [large, other] = (await createTenants(database, shape)) as [Request, Request]
  await insertSignals(context, large, number)
  await database.sql.script('vacuum analyze signals')
  // Otherwise the load is written to disk during the measurements.
  await database.sql.script('checkpoint')
  const server = await context.serve()
  const countSeconds = await timeOf(() => readUntilCounted(server, large))

  const post = async (name: string, { seconds }: Round): Promise<Row> => {
    const load = { url: server.url, requests: [other], seconds, ...quietLoad }
    const { answered: _, ...row } = await applyOpenLoad(load)
    return { name: `200 signals a second of another organisation, ${name}`, ...row, residentMb: null }
  }
  const purge = ['signals', 'purge', '--prompt', promptOf(large), '--yes', '--before']
  const share = Math.min(1, maxPurged / number)
  let [rounds, purgeSeconds] = [0, 0]
  const ratio = await compare(context, {
    idle: (round) => post('idle', round),
    async purging(round) {
      rounds += 1
      const before = new Date(since + (rounds / plan.rounds) * share * (until - since)).toISOString()
      const run = () => runProgram([operator.program, ...purge, before], { ...operator, env: operator.settings })
      const [row, seconds] = await Promise.all([post('purging', round), timeOf(run)])
      purgeSeconds += seconds
      return row
    },
  })
  await server.stop()
  report.targets.push(
    { name: 'signals a second counted after a bulk load', value: number / countSeconds, atLeast: 500_000 },
    { name: 'signals a second purged', value: (share * number) / purgeSeconds, atLeast: 40_000 },
    { name: 'p99 of another organisation ÷ idle', value: ratio('purging', 'idle', ({ p99Ms }) => p99Ms), below: 2 },
  )
}

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const beganAt = performance.now()
  await work()
  return (performance.now() - beganAt) / 1_000
}

/** Asks again as soon as it is refused: the time until the first answer is that of the rollup. */
async function readUntilCounted({ url }: Server, { path, key }: Request): Promise<void> {
  const ask = () => fetch(url + path.replace('/signals', '/stats'), { headers: { authorization: `Bearer ${key}` } })
  for (let answer = await ask(); answer.status !== 200; answer = await ask()) {
    if (answer.status !== 503) throw new Error(`stats answered ${answer.status}`)
  }
}
