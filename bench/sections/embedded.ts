import { join } from 'node:path'
import { compare } from '../compare.ts'
import { openOwnDatabase } from '../database.ts'
import { createTenants, unreachableLimit } from '../fixtures.ts'
import type { Ground } from '../ground.ts'
import { measure } from '../phase.ts'

/** Signals on the embedded engine, without Redis. */
export async function measureEmbedded(ground: Ground): Promise<void> {
  const settings = { DATA_DIR: join(ground.folder, 'data') }
  const server = await ground.serve(settings)
  const operator = { ...ground.operator, settings }
  const requests = await createTenants(operator, { organisations: 10, promptsEach: 1, monthlyLimit: unreachableLimit })
  const database = await openOwnDatabase(settings)
  try {
    const name = 'POST signals, embedded engine, 64 connections'
    const phase = { name, servers: [server], connections: 64, requests, database }
    await compare(ground, { embedded: (turn) => measure(ground, phase, turn) })
  } finally {
    await database.close()
  }
  await server.stop()
}
