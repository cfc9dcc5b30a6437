import { join } from 'node:path'
import { compare } from '../compare.ts'
import type { Context } from '../context.ts'
import { openOwnDatabase } from '../database.ts'
import { createTenants, unreachableLimit } from '../fixtures.ts'
import { measure } from '../measure.ts'

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
  } finally {
    await database.close()
  }
  await server.stop()
}
