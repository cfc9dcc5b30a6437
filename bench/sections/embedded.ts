import { join } from 'node:path'
import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import { openOwnDatabase } from '../database.ts'
import { createTenants, unreachableLimit } from '../fixtures.ts'
import { measure } from '../measure.ts'

/** With 8 KB of metadata: the engine keeps the memory of the largest batch that it has written. */
const largeBody = JSON.stringify({ value: 'positive', metadata: { text: 'x'.repeat(8_000) } })

/** Signals on the embedded engine, without Redis. */
export async function measureEmbedded(context: Context): Promise<void> {
  const settings = { DATA_DIR: join(context.folder, 'data') }
  const server = await context.serve(settings)
  const database = await openOwnDatabase(settings)
  try {
    const requests = await createTenants(database, {
      organisations: 10,
      promptsEach: 1,
      monthlyLimit: unreachableLimit,
    })
    const name = 'POST signals, embedded engine, 64 connections'
    const phase = { name, servers: [server], connections: 64, requests, database }
    await compare(context, { embedded: (round) => measure(context, phase, round) })
    const large = {
      ...phase,
      name: 'POST signals with 8 KB of metadata, embedded engine, 256 connections',
      connections: 256,
      requests: requests.map((request) => ({ ...request, body: largeBody })),
    }
    await compare(context, { large: (round) => measure(context, large, round) })
    context.report.targets.push({
      name: 'embedded, resident memory after signals with 8 KB of metadata, MB',
      value: context.report.rows.at(-1)?.residentMb ?? Number.NaN,
      below: 450,
    })
  } finally {
    await database.close()
  }
  await server.stop()
}
