import { compare } from '../compare.ts'
import { createTenants } from '../fixtures.ts'
import type { Ground } from '../ground.ts'
import type { Request } from '../load.ts'
import { measure } from '../phase.ts'

const livez: Request = { method: 'GET', path: '/livez', key: '', body: '' }

/** What an organisation at its limit costs, beside an answer that costs nothing but HTTP. */
export async function measureRefusing(ground: Ground): Promise<void> {
  const requests = await createTenants(ground.operator, { organisations: 1, promptsEach: 1, monthlyLimit: 0 })
  const server = await ground.serve()
  const at64 = { servers: [server], connections: 64 }
  const alive = { name: 'GET /livez, 64 connections', ...at64, requests: [livez], status: 200 }
  const refused = { name: 'POST refused by the limit, 64 connections', ...at64, requests, status: 429 }
  const ratio = await compare(ground, {
    alive: (turn) => measure(ground, alive, turn),
    refused: (turn) => measure(ground, refused, turn),
  })
  await server.stop()
  ground.report.targets.push({ name: 'refused ÷ /livez', value: ratio('refused', 'alive'), atLeast: 0.5 })
}
