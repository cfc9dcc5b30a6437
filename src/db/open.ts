import { once } from 'node:events'
import { chmodSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream'
import type { Config } from '../config.ts'
import { within } from '../lib/deadline.ts'
import { listHosts, splitHosts } from '../lib/hosts.ts'
import { migrations } from '../platform.ts'
import { type ClientOptions, type DatabaseObserver, type Db, openClient, type Sql } from './client.ts'
import { DataDirInUse, hasFiles, rejectForeignDataDir, removeAbandonedCopy } from './data_dir.ts'
import type { Embedded } from './embedded.ts'
import { isPostgresError, isRejectedByPooler, reasonOf } from './errors.ts'
import { type BackUp, migrate, readSchemaVersion, requireSchema, SchemaError } from './migrations.ts'
import { rejectMixingPooler, requireSettings } from './pooler.ts'
import { createPrimary } from './primary.ts'
import { parseTls } from './tls.ts'

export type Options = ClientOptions & {
  /** What to do when another process holds the data directory: work through that process, or fail. */
  whenInUse: 'share' | 'fail'
  /** Whether an empty data directory is rejected, instead of getting a new database. */
  mustExist?: boolean
  /** Called before an embedded database is migrated. */
  backUp?: BackUp
}

/** How long a database may take to answer the first query. */
const answerMs = 5_000
/** How long to wait for the process that holds the data directory: to end, or to share it, which takes longer. */
const holderMs = { fail: 5_000, share: 30_000 }
/** The kernel's own limit on the name of a socket. */
const maxSocketPath = 107

const controlSocket = (dataDir: string) => join(dataDir, 'control.sock')

/**
 * Opens the configured database and requires this program's schema. An embedded one is migrated to it, unless a server is
 * running on it: as with Postgres, that is then for its operator to do.
 */
export async function openDatabase(config: Config, options: Options): Promise<Db> {
  if (config.DATABASE_URL) {
    return openServer(config.DATABASE_URL, options, (sql) => requireSchema(sql, migrations))
  }
  const { db, isShared } = await openDataDir(config.DATA_DIR, options)
  try {
    const isInUse = isShared && (await readSchemaVersion(db.sql)) > 0
    if (isInUse) await requireSchema(db.sql, migrations)
    else await migrate(db, migrations, options.backUp)
    return db
  } catch (error) {
    await db.close()
    throw error
  }
}

/** Opens it for a service, which runs many statements concurrently and gives each a deadline. */
export const openForService = (config: Config, observer: DatabaseObserver, backUp: BackUp): Promise<Db> =>
  openDatabase(config, {
    queryTimeoutMs: 4_500,
    maxConnections: 10,
    mustBeWritable: true,
    whenInUse: 'fail',
    mustExist: config.REQUIRE_DATABASE === 'on',
    observer,
    backUp,
  })

/** Opens the configured database with any schema, to migrate or restore it. */
export async function openAny(config: Config, options: Options): Promise<Db> {
  if (config.DATABASE_URL) return openServer(config.DATABASE_URL, options, (sql) => sql`select 1`)
  return (await openDataDir(config.DATA_DIR, options)).db
}

/** Opens a database server and runs a first query, since only that shows whether it can be used. */
async function openServer(url: string, options: Options, firstQuery: (sql: Sql) => Promise<unknown>): Promise<Db> {
  const urls = splitHosts(url)
  const hosts = urls.map(({ href }) => parseTls(href))
  const isOneOfMany = hosts.length > 1
  const target = {
    ...(hosts[0] as ReturnType<typeof parseTls>),
    ...(isOneOfMany ? { primary: createPrimary(hosts) } : {}),
  }
  const db = openClient(target, isOneOfMany ? { ...options, mustBeWritable: true } : options)
  const check = async () => {
    await firstQuery(db.sql)
    await rejectMixingPooler(target, options, db.sql)
    await requireSettings(db.sql)
  }
  try {
    await within(answerMs, check())
    return db
  } catch (error) {
    // The close is not awaited, because a server that does not answer queries does not answer that either.
    db.close().catch(() => {})
    if (error instanceof SchemaError) throw error
    if (isRejectedByPooler(error) && !options.skipsSettings) {
      return openServer(url, { ...options, skipsSettings: true }, firstQuery)
    }
    const isUnnamed = urls[0]?.username === '' && isPostgresError(error) && error.code.startsWith('28')
    const advice = isUnnamed ? '. Name a user in DATABASE_URL: postgres://USER:PASSWORD@HOST/DATABASE' : ''
    throw new Error(`The database at ${listHosts(urls)} cannot be used: ${reasonOf(error)}${advice}`)
  }
}

/** Opens the embedded database; `isShared` when the engine is that of another process. */
export async function openDataDir(dataDir: string, options: Options): Promise<{ db: Db; isShared: boolean }> {
  rejectForeignDataDir(dataDir)
  // A mistyped name must not create another database and show that it is empty.
  if (options.mustExist && !hasFiles(dataDir)) {
    throw new Error(
      `There is no database in ${dataDir}. Set DATA_DIR or DATABASE_URL, or begin with "prompt-signals init".`,
    )
  }
  const giveUpAt = performance.now() + holderMs[options.whenInUse]
  for (;;) {
    try {
      return { db: await openOwn(dataDir, options), isShared: false }
    } catch (error) {
      if (!(error instanceof DataDirInUse)) throw error
    }
    const shared = options.whenInUse === 'share' ? await openShared(dataDir, options) : undefined
    if (shared) return { db: shared, isShared: true }
    if (performance.now() > giveUpAt) {
      throw new Error(`The data directory ${dataDir} is in use by another prompt-signals. Stop it, or set DATA_DIR.`)
    }
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Opens the engine in this process and lets other processes of the same user work through it. */
async function openOwn(dataDir: string, options: Options): Promise<Db> {
  const path = controlSocket(dataDir)
  if (Buffer.byteLength(path) > maxSocketPath) {
    throw new Error(`DATA_DIR is too long a path: ${path} must have at most ${maxSocketPath} bytes.`)
  }
  // The engine is loaded only here, because a service on a Postgres server would be slower to start with it.
  const { openEmbedded } = await import('./embedded.ts')
  const engine = await openEmbedded(dataDir, options.observer)
  await removeAbandonedCopy(dataDir)
  const stopSharing = await share(engine, path)
  const db = openEngineClient(engine, options)
  return { ...db, close: () => stopSharing().then(db.close) }
}

/** Opens a client of an engine in this process, and closes the engine with it. */
export function openEngineClient(engine: Embedded, options: Options): Db {
  const db = openClient({ socket: engine.connect }, { ...options, maxConnections: 1 })
  return { ...db, close: () => db.close().finally(engine.close) }
}

/** Gives each connection on the socket a session of the engine. Only the owner of the data can open the socket. */
async function share(engine: Embedded, path: string): Promise<() => Promise<void>> {
  const server = createServer((guest) => {
    // The end or failure of one ends the other. Neither is an error of this process.
    pipeline(guest, engine.connect(), guest, () => {})
  })
  rmSync(path, { force: true })
  await once(server.listen(path), 'listening')
  // A guest that cannot be accepted tries again, and must not end the service.
  server.on('error', () => {})
  chmodSync(path, 0o600)
  server.unref()
  return () => new Promise((resolve) => server.close(() => resolve()))
}

/** Connects to the process that holds the data directory; undefined when it does not answer. */
async function openShared(dataDir: string, options: Options): Promise<Db | undefined> {
  const path = controlSocket(dataDir)
  const socket = async () => {
    const guest = connect(path)
    await once(guest, 'connect')
    return guest
  }
  const db = openClient({ socket }, { ...options, maxConnections: 1 })
  try {
    // Both connections of the client are opened now, because a process that is closing accepts no further ones.
    await within(answerMs, Promise.all([db.sql`select 1`, db.transaction((sql) => sql`select 1`)]))
    return db
  } catch {
    // The close is not awaited, because the driver takes seconds over a connection that it could not make.
    db.close().catch(() => {})
    return undefined
  }
}
