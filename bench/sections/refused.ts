import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import { createTenants } from '../fixtures.ts'
import type { Request } from '../load.ts'
import { measure } from '../measure.ts'

const livez: Request = { method: 'GET', path: '/livez', key: '', body: '' }

/** What an organisation at its limit costs, beside an answer that costs nothing but HTTP. */
export async function measureRefusing(context: Context): Promise<void> {
  const requests = await createTenants(context.database, { organisations: 1, promptsEach: 1, monthlyLimit: 0 })
  const server = await context.serve()
  const at64 = { servers: [server], connections: 64 }
  const alive = { name: 'GET /livez, 64 connections', ...at64, requests: [livez], status: 200 }
  const refused = { name: 'POST refused by the limit, 64 connections', ...at64, requests, status: 429 }
  const ratio = await compare(context, {
    alive: (round) => measure(context, alive, round),
    refused: (round) => measure(context, refused, round),
  })
  await server.stop()
  context.report.targets.push({ name: 'refused ÷ /livez', value: ratio('refused', 'alive'), atLeast: 0.5 })
}
