import type { Ground } from '../ground.ts'
import { measure } from '../phase.ts'

/** What a fresh process holds on to after a minute in which it was never idle. */
export async function measureMemory(ground: Ground): Promise<void> {
  const server = await ground.serve()
  const { memorySeconds: seconds, warmUpSeconds } = ground.plan
  const name = `POST signals, 256 connections for ${seconds} s`
  const row = await measure(ground, { name, servers: [server], connections: 256 }, { warmUpSeconds, seconds })
  await server.stop()
  ground.report.rows.push(row)
  ground.report.targets.push({
    name: 'resident memory after full load, MB',
    value: row.residentMb ?? Number.NaN,
    below: 220,
  })
}
