import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import { measure } from '../measure.ts'
import { insertOneByOne } from '../pgbench.ts'
import type { Round } from '../plan.ts'

/** Signals on Postgres and Redis, beside a plain service and beside Postgres itself on the same machine. */
export async function measureRecording(context: Context): Promise<void> {
  const [ours, plain] = [await context.serve(), await context.servePlain()]
  const post = (connections: number) => (round: Round) =>
    measure(context, { name: `POST signals, ${connections} connections`, servers: [ours], connections }, round)
  const postPlain = (connections: number) => (round: Round) =>
    measure(
      context,
      { name: `plain service, ${connections} connections`, servers: [plain], connections, table: 'plain_signals' },
      round,
    )

  const few = await compare(context, { ours: post(8), plain: postPlain(8) })
  const some = await compare(context, { ours: post(64), plain: postPlain(64) })
  const inserts = (round: Round) => insertOneByOne(context, round)
  const many = await compare(context, { ours: post(256), inserts, plain: postPlain(256) })
  await Promise.all([ours.stop(), plain.stop()])

  context.report.targets.push(
    { name: 'POST at 256 ÷ one-row inserts by pgbench', value: many('ours', 'inserts'), atLeast: 1.5 },
    { name: 'POST at 64 ÷ plain service at 64', value: some('ours', 'plain'), atLeast: 6 },
    { name: 'POST at 8 ÷ plain service at 8', value: few('ours', 'plain'), atLeast: 2.5 },
    {
      name: "p99 at 256 ÷ plain service's p99 at 256",
      value: many('ours', 'plain', ({ p99Ms }) => p99Ms),
      atMost: 0.15,
    },
  )
}
