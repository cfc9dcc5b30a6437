import { compare, type Turn } from '../compare.ts'
import type { Ground } from '../ground.ts'
import { insertOneByOne } from '../pgbench.ts'
import { measure } from '../phase.ts'

/** Signals on Postgres and Redis, beside a plain service and beside Postgres itself on the same machine. */
export async function measureRecording(ground: Ground): Promise<void> {
  const [ours, plain] = [await ground.serve(), await ground.servePlain()]
  const post = (connections: number) => (turn: Turn) =>
    measure(ground, { name: `POST signals, ${connections} connections`, servers: [ours], connections }, turn)
  const postPlain = (connections: number) => (turn: Turn) =>
    measure(
      ground,
      { name: `plain service, ${connections} connections`, servers: [plain], connections, table: 'plain_signals' },
      turn,
    )

  const few = await compare(ground, { ours: post(8), plain: postPlain(8) })
  const some = await compare(ground, { ours: post(64), plain: postPlain(64) })
  const inserts = (turn: Turn) => insertOneByOne(ground, turn)
  const many = await compare(ground, { ours: post(256), inserts, plain: postPlain(256) })
  await Promise.all([ours.stop(), plain.stop()])

  ground.report.targets.push(
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
