import type { Context } from '../context.ts'
import { measure } from '../measure.ts'

/** What a fresh process holds on to after a minute in which it was never idle. */
export async function measureMemory(context: Context): Promise<void> {
  const server = await context.serve()
  const { memorySeconds: seconds, warmUpSeconds } = context.plan
  const name = `POST signals, 256 connections for ${seconds} s`
  const row = await measure(context, { name, servers: [server], connections: 256 }, { warmUpSeconds, seconds })
  await server.stop()
  context.report.rows.push(row)
  context.report.targets.push({
    name: 'resident memory after full load, MB',
    value: row.residentMb ?? Number.NaN,
    below: 220,
  })
}
