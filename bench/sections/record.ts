import type { Ground } from '../ground.ts'
import { insertOneByOne } from '../pgbench.ts'
import { measure } from '../phase.ts'

/** Signals on Postgres and Redis, beside a plain service and beside Postgres itself on the same machine. */
export async function measureRecording(ground: Ground): Promise<void> {
  const [ours, plain] = [await ground.serve(), await ground.servePlain()]
  const post = (connections: number) =>
    measure(ground, { name: `POST signals, ${connections} connections`, servers: [ours], connections })
  const postPlain = (connections: number) =>
    measure(ground, {
      name: `plain service, ${connections} connections`,
      servers: [plain],
      connections,
      table: 'plain_signals',
    })

  // What is compared is measured next to each other, as a machine's speed drifts.
  const few = { ours: await post(8), plain: await postPlain(8) }
  const some = { ours: await post(64), plain: await postPlain(64) }
  const before = await insertOneByOne(ground)
  const many = { ours: await post(256), after: await insertOneByOne(ground), plain: await postPlain(256) }
  const inserts = (before.requestsPerSecond + many.after.requestsPerSecond) / 2
  await Promise.all([ours.stop(), plain.stop()])

  const ratio = (of: { ours: { requestsPerSecond: number }; plain: { requestsPerSecond: number } }) =>
    of.ours.requestsPerSecond / of.plain.requestsPerSecond
  ground.report.targets.push(
    { name: 'POST at 256 ÷ one-row inserts by pgbench', value: many.ours.requestsPerSecond / inserts, atLeast: 1.5 },
    { name: 'POST at 64 ÷ plain service at 64', value: ratio(some), atLeast: 6 },
    { name: 'POST at 8 ÷ plain service at 8', value: ratio(few), atLeast: 2.5 },
    { name: "p99 at 256 ÷ plain service's p99 at 256", value: many.ours.p99Ms / many.plain.p99Ms, atMost: 0.15 },
  )
}
