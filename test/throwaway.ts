// Starts a server in a new folder on a free loopback port. Stopping it removes the folder.
import { closeSync, openSync } from 'node:fs'
import { chown, mkdtemp, readFile, realpath, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Server {
  url: string
  pid(): number
  /** Ends the server as a crash would, and waits until it is gone. */
  crash(signal: 'SIGKILL' | 'SIGQUIT'): Promise<void>
  /** Starts it again after a crash, on the same port and folder, and waits until it answers. */
  restart(): Promise<void>
  stop(): Promise<void>
}

export interface Recipe {
  name: string
  /** Run once in the empty folder, before the server itself. */
  prepare?: string[]
  command(port: number): string[]
  url(port: number): string
  /** The folder of the server that answers at that address; rejects while none does. */
  folderOf(url: string): Promise<string>
  stopSignal: NodeJS.Signals
}

const READY_MS = 30_000
const POLL_MS = 50
const STOP_MS = 10_000
const PORT_ATTEMPTS = 5
const LOG_TAIL_LINES = 20

export async function startThrowaway(makeRecipe: (folder: string) => Recipe): Promise<Server> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'prompt-signals-test-')))
  const removeFolder = () => rm(folder, { recursive: true, force: true })
  try {
    const recipe = makeRecipe(folder)
    const asUser = await giveToUnprivilegedUser(folder)
    if (recipe.prepare) {
      const code = await launch(folder, [...asUser, ...recipe.prepare]).exited
      if (code !== 0) throw new Error(`${recipe.prepare[0]} failed with exit code ${code}${await logTail(folder)}`)
    }
    let { url, port, child } = await startOnFreePort(recipe, folder, asUser)
    return {
      url,
      pid: () => child.pid,
      async crash(signal) {
        child.kill(signal)
        await child.exited
      },
      async restart() {
        child = launch(folder, [...asUser, ...recipe.command(port)])
        if (!(await waitUntilReady(recipe, url, folder, child))) {
          throw new Error(`${recipe.name} did not start again${await logTail(folder)}`)
        }
      },
      async stop() {
        await stopChild(child, recipe.stopSignal)
        await removeFolder()
      },
    }
  } catch (error) {
    await removeFolder()
    throw error
  }
}

/** Postgres does not run as root. Returns what to put before a command. */
async function giveToUnprivilegedUser(folder: string): Promise<string[]> {
  if (process.getuid?.() !== 0) return []
  const user = idOf('postgres') ?? idOf('nobody')
  if (!user)
    throw new Error('Run as root, the servers need a user `postgres` or `nobody` to run as, and there is neither')
  await chown(folder, user.uid, user.gid)
  return ['setpriv', '--reuid', `${user.uid}`, '--regid', `${user.gid}`, '--clear-groups']
}

function idOf(name: string): { uid: number; gid: number } | undefined {
  const readId = (flag: string) => Bun.spawnSync(['id', flag, name])
  const [uid, gid] = [readId('-u'), readId('-g')]
  return uid.success && gid.success ? { uid: Number(uid.stdout), gid: Number(gid.stdout) } : undefined
}

async function startOnFreePort(recipe: Recipe, folder: string, asUser: string[]) {
  for (let attempt = 1; attempt <= PORT_ATTEMPTS; attempt++) {
    const port = await findFreePort()
    const url = recipe.url(port)
    const child = launch(folder, [...asUser, ...recipe.command(port)])
    const isReady = await waitUntilReady(recipe, url, folder, child)
    if (isReady) return { url, port, child }
    if (isRunning(child)) {
      await stopChild(child, recipe.stopSignal)
      throw new Error(`${recipe.name} did not answer within ${READY_MS} ms${await logTail(folder)}`)
    }
    // It ended: another process may have taken the port since it was found free.
  }
  throw new Error(`${recipe.name} ended ${PORT_ATTEMPTS} times while starting${await logTail(folder)}`)
}

/** Compares the folder, because a port lost to another test run is served by that run's server. */
async function waitUntilReady(recipe: Recipe, url: string, folder: string, child: Bun.Subprocess): Promise<boolean> {
  const deadline = Date.now() + READY_MS
  while (Date.now() < deadline && isRunning(child)) {
    const answer = await recipe.folderOf(url).catch(() => undefined)
    if (answer === folder) return true
    await Promise.race([child.exited, Bun.sleep(POLL_MS)])
  }
  return false
}

function launch(folder: string, command: string[]): Bun.Subprocess {
  const log = openSync(join(folder, 'log'), 'a')
  const child = Bun.spawn(command, {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, LC_ALL: 'C' },
    stdio: ['ignore', log, log],
    // Out of reach of the terminal's Ctrl-C, so that the tests can end before their servers.
    detached: true,
  })
  closeSync(log)
  return child
}

function isRunning(child: Bun.Subprocess): boolean {
  return child.exitCode === null && child.signalCode === null
}

async function stopChild(child: Bun.Subprocess, signal: NodeJS.Signals): Promise<void> {
  child.kill(signal)
  const lastResort = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
  await child.exited
  clearTimeout(lastResort)
}

async function logTail(folder: string): Promise<string> {
  const log = await readFile(join(folder, 'log'), 'utf8').catch(() => '')
  return `, its log ends:\n${log.trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n')}`
}

/**
 * Below the range that the system numbers outgoing connections from: one of those could otherwise take the port while its
 * server is down.
 */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 20_000)
    const server = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false))
      server.listen(port, '127.0.0.1', () => resolve(true))
    })
    await new Promise((resolve) => server.close(resolve))
    if (isFree) return port
  }
}
