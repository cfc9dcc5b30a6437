// The real Postgres and Redis under the tests: those named by the environment, or throwaway ones of our own.
import { join } from 'node:path'
import { Redis } from 'ioredis'
import postgres from 'postgres'
import { farTimeZones } from './environment.ts'
import {
  chromiumProgram,
  findOrInstall,
  gitProgram,
  haproxyProgram,
  nginxProgram,
  type Program,
  postgresProgram,
  redisProgram,
} from './programs.ts'
import { type Recipe, type Server, startThrowaway } from './throwaway.ts'

export interface Services {
  databaseUrl: string
  redisUrl: string
  stop(): Promise<void>
}

const REACH_MS = 10_000

/**
 * For databases that need not survive a crash of the machine: creating and dropping one then does not wait for the disk.
 * Not for benchmarks.
 */
export const withoutSync = ['fsync=off', 'full_page_writes=off']

/** Starts what the environment does not name. The caller must call stop(). */
export async function startServices(postgresSettings: string[] = []): Promise<Services> {
  const { TEST_DATABASE_URL, TEST_REDIS_URL } = process.env
  // Both first: one message names everything that is missing.
  await findOrInstall([...(TEST_DATABASE_URL ? [] : [postgresProgram]), ...(TEST_REDIS_URL ? [] : [redisProgram])])
  const database = TEST_DATABASE_URL
    ? await useGiven(
        postgresProgram,
        TEST_DATABASE_URL,
        withPostgres(TEST_DATABASE_URL, (sql) => sql`select 1`),
      )
    : await startPostgres(...postgresSettings)
  try {
    const redis = TEST_REDIS_URL
      ? await useGiven(
          redisProgram,
          TEST_REDIS_URL,
          withRedis(TEST_REDIS_URL, (client) => client.ping()),
        )
      : await startRedis()
    const stop = async () => {
      await Promise.all([database.stop(), redis.stop()])
    }
    return { databaseUrl: database.url, redisUrl: redis.url, stop }
  } catch (error) {
    await database.stop()
    throw error
  }
}

/** The variables that say where the programs are that single tests start: a browser, git and proxies. */
export async function findTestPrograms(): Promise<Record<string, string | undefined>> {
  const programs = [chromiumProgram, gitProgram, haproxyProgram, nginxProgram]
  const paths = await findOrInstall(programs)
  return Object.fromEntries(programs.map(({ variable }, index) => [variable, paths[index]]))
}

async function useGiven(
  program: Program,
  url: string,
  reached: Promise<unknown>,
): Promise<Pick<Server, 'url' | 'stop'>> {
  const tooLate = Bun.sleep(REACH_MS).then(() => Promise.reject(new Error(`no answer within ${REACH_MS} ms`)))
  await Promise.race([reached, tooLate]).catch((error: Error) => {
    throw new Error(
      `${program.variable} cannot be reached (${error.message}): correct it, or unset it to have one started`,
    )
  })
  return { url, stop: async () => {} }
}

/** A throwaway Postgres, whatever the environment names. */
export async function startPostgres(...settings: string[]): Promise<Server> {
  const [programs = ''] = await findOrInstall([postgresProgram])
  return startThrowaway((folder) => postgresRecipe(programs, folder, settings))
}

/** A throwaway Redis, whatever the environment names. */
export async function startRedis(...settings: string[]): Promise<Server> {
  const [program = ''] = await findOrInstall([redisProgram])
  return startThrowaway((folder) => {
    const recipe = redisRecipe(program, folder)
    // A master would otherwise wait five seconds for further replicas before it copies itself.
    const withoutDelay = ['--repl-diskless-sync-delay', '0']
    return { ...recipe, command: (port) => [...recipe.command(port), ...withoutDelay, ...settings] }
  })
}

export function postgresRecipe(programFolder: string, folder: string, more: string[] = []): Recipe {
  const data = join(folder, 'data')
  const settings = [
    'listen_addresses=127.0.0.1',
    'max_connections=200',
    `unix_socket_directories=${folder}`,
    `timezone=${farTimeZones.postgres}`,
    ...more,
  ]
  return {
    name: 'Postgres',
    prepare: [
      ...[join(programFolder, 'initdb'), '-D', data, '-U', 'postgres', '--encoding=UTF8', '--locale=C', '--no-sync'],
      ...['--auth-host=trust', '--auth-local=reject'],
    ],
    command: (port) => [
      ...[join(programFolder, 'postgres'), '-D', data, '-p', `${port}`],
      ...settings.flatMap((setting) => ['-c', setting]),
    ],
    url: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,
    folderOf: (url) =>
      withPostgres(url, async (sql) => {
        const [row] = await sql<[{ folder: string }]>`select current_setting('unix_socket_directories') as folder`
        return row.folder
      }),
    // Fast shutdown; SIGTERM would wait for every client to leave.
    stopSignal: 'SIGINT',
  }
}

export function redisRecipe(program: string, folder: string): Recipe {
  const settings = ['--save', '', '--appendonly', 'no', '--bind', '127.0.0.1', '--dir', folder]
  return {
    name: 'Redis',
    command: (port) => [program, '--port', `${port}`, ...settings],
    url: (port) => `redis://127.0.0.1:${port}`,
    folderOf: (url) =>
      withRedis(url, async (client) => {
        const [, folder] = (await client.config('GET', 'dir')) as [string, string]
        return folder
      }),
    stopSignal: 'SIGTERM',
  }
}

export async function withPostgres<T>(url: string, use: (sql: postgres.Sql) => PromiseLike<T>): Promise<T> {
  const sql = postgres(url, { max: 1, connect_timeout: 10, onnotice: () => {} })
  try {
    return await use(sql)
  } finally {
    await sql.end({ timeout: 0 })
  }
}

export async function withRedis<T>(url: string, use: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null, commandTimeout: 2_000 })
  // connect() rejects with the same error; without a listener it would be printed as well.
  client.on('error', () => {})
  try {
    await client.connect()
    return await use(client)
  } finally {
    client.disconnect()
  }
}
