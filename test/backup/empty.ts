import { afterAll } from 'bun:test'
import { readConfig } from '../../src/config.ts'
import type { Db } from '../../src/db/client.ts'
import { openAny } from '../../src/db/open.ts'
import { createEmptyDatabase } from '../harness.ts'

/** Returns a function that opens databases without a schema, which are removed after the tests of the file. */
export function useEmptyDatabases(): () => Promise<Db> {
  const closings: (() => Promise<void>)[] = []
  afterAll(async () => {
    for (const close of closings.reverse()) await close()
  })
  return async () => {
    const database = await createEmptyDatabase()
    closings.push(database.close)
    const options = { queryTimeoutMs: 0, maxConnections: 1, whenInUse: 'fail' as const }
    const db = await openAny(readConfig({}, database.settings), options)
    closings.push(db.close)
    return db
  }
}
