// A Postgres and a Redis to be stopped, killed and started again where they were. Always the suite's own.
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { findOrInstall, postgresProgram, redisProgram } from '../programs.ts'
import { type Recipe, startThrowaway } from '../throwaway.ts'
import { queryPostgres, queryRedis } from './clients.ts'

export type Machine = {
  url: string
  /** Ends the server as a crash would, and waits until it is gone. */
  crash(signal: 'SIGKILL' | 'SIGQUIT'): Promise<void>
  /** Starts it again on the same port and folder, and waits until it answers. */
  restart(): Promise<void>
  /** Runs the work while the server and the processes it names stand still. */
  whileStopped<T>(children: () => Promise<number[]>, work: () => Promise<T>): Promise<T>
  stop(): Promise<void>
}

const START_MS = 60_000
const POLL_MS = 20

export async function startMachines(): Promise<{ postgres: Machine; redis: Machine }> {
  const [postgresFolder = '', redisPath = ''] = await findOrInstall([postgresProgram, redisProgram])
  const postgres = await startMachine((folder) => postgresRecipe(postgresFolder, folder))
  try {
    return { postgres, redis: await startMachine((folder) => redisRecipe(redisPath, folder)) }
  } catch (error) {
    await postgres.stop()
    throw error
  }
}

async function startMachine(makeRecipe: (folder: string) => Recipe): Promise<Machine> {
  let folder = ''
  let recipe: Recipe | undefined
  const first = await startThrowaway((given) => {
    folder = given
    recipe = makeRecipe(given)
    return recipe
  })
  const { command, folderOf, stopSignal } = recipe as unknown as Recipe
  const port = Number(new URL(first.url).port)
  const pid = () => Number(readFileSync(join(folder, 'pid'), 'utf8'))
  let again: Bun.Subprocess | undefined
  let standing: number[] = []
  const goOn = () => {
    for (const one of standing.reverse()) sendTo(one, 'SIGCONT')
    standing = []
  }

  return {
    url: first.url,
    async crash(signal) {
      const dying = pid()
      process.kill(dying, signal)
      await until(() => !isAlive(dying), `the end of process ${dying}`)
    },
    async restart() {
      again = Bun.spawn([...asOwnerOf(folder), ...command(port)], {
        cwd: folder,
        env: { PATH: process.env.PATH, HOME: folder, LC_ALL: 'C' },
        stdio: ['ignore', 'ignore', 'ignore'],
        detached: true,
      })
      await until(async () => (await folderOf(first.url).catch(() => '')) === folder, `an answer of ${first.url}`)
    },
    async whileStopped(children, work) {
      // The parent first: it starts no further process while the others are listed.
      standing.push(pid())
      process.kill(pid(), 'SIGSTOP')
      try {
        for (const child of await children()) {
          standing.push(child)
          sendTo(child, 'SIGSTOP')
        }
        return await work()
      } finally {
        goOn()
      }
    },
    async stop() {
      // An interrupted run leaves them standing, and a process that stands still does not end.
      goOn()
      again?.kill(stopSignal)
      await again?.exited
      await first.stop()
    },
  }
}

/**
 * Below the range that outgoing connections are numbered from: one of the load's could otherwise take the port
 * while its server is down.
 */
const lowPort = (port: number) => (port < 30_000 ? port : 10_000 + (port % 20_000))

function postgresRecipe(programFolder: string, folder: string): Recipe {
  const data = join(folder, 'data')
  const url = (port: number) => `postgres://postgres@127.0.0.1:${lowPort(port)}/postgres`
  const settings = [
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
    `external_pid_file=${folder}/pid`,
  ]
  return {
    name: 'Postgres',
    prepare: [
      ...[join(programFolder, 'initdb'), '-D', data, '-U', 'postgres', '--encoding=UTF8', '--locale=C', '--no-sync'],
      ...['--auth-host=trust', '--auth-local=reject'],
    ],
    command: (port) => [
      ...[join(programFolder, 'postgres'), '-D', data, '-p', `${lowPort(port)}`],
      ...settings.flatMap((setting) => ['-c', setting]),
    ],
    url,
    folderOf: (address) =>
      queryPostgres(address, async (sql) => {
        const [row] = await sql<[{ folder: string }]>`select current_setting('unix_socket_directories') as folder`
        return row.folder
      }),
    stopSignal: 'SIGINT',
  }
}

function redisRecipe(program: string, folder: string): Recipe {
  const settings = ['--save', '', '--bind', '127.0.0.1', '--dir', folder, '--pidfile', join(folder, 'pid')]
  return {
    name: 'Redis',
    command: (port) => [program, '--port', `${lowPort(port)}`, ...settings],
    url: (port) => `redis://127.0.0.1:${lowPort(port)}`,
    folderOf: (address) =>
      queryRedis(address, async (client) => {
        const [, dir = ''] = (await client.config('GET', 'dir')) as string[]
        return dir
      }),
    stopSignal: 'SIGTERM',
  }
}

/** The prefix of a command that is to run as the owner of a folder, as the first start did: Postgres does not run as root. */
function asOwnerOf(folder: string): string[] {
  const { uid, gid } = statSync(folder)
  return process.getuid?.() === 0 ? ['setpriv', '--reuid', `${uid}`, '--regid', `${gid}`, '--clear-groups'] : []
}

/** A process that has ended by itself needs no signal. */
function sendTo(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    return false
  }
}

const isAlive = (pid: number) => sendTo(pid, 0)

async function until(isSo: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const giveUpAt = performance.now() + START_MS
  while (!(await isSo())) {
    if (performance.now() > giveUpAt) throw new Error(`${what} did not come within ${START_MS} ms`)
    await Bun.sleep(POLL_MS)
  }
}
