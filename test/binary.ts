// Drives the built binary as an operator would: in an empty folder, and with no more environment than it is given.
// Free of bun:test, for the faults and the soak.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export type Settings = Record<string, string | undefined>

// biome-ignore lint/suspicious/noExplicitAny: the fields depend on the event
export type LogLine = Record<string, any>

export type Finished = { status: number; stdout: string; stderr: string }

export type Server = {
  url: string
  pid: number
  stdout(): string
  stderr(): string
  /** The lines of its log that are complete. */
  log(): LogLine[]
  /** Sends it SIGTERM, and resolves with the exit status once it has ended. */
  stop(): Promise<number>
  /** The exit status, once it has ended. */
  ended(): Promise<number>
  /** Ends it as a crash would. */
  kill(): Promise<void>
}

export const PROGRAM = join(import.meta.dir, '../dist/prompt-signals')
/**
 * Far above what any command of the tests takes on a busy machine, and below the time that a test has, so that one that
 * hangs fails its test by its status.
 */
const RUN_MS = 90_000
const START_MS = 90_000
const MAX_LOG = 50_000_000
/** The end of the run removes what is beside the template of the databases. */
const parent = process.env.TEST_TEMPLATE_DIR ? dirname(process.env.TEST_TEMPLATE_DIR) : tmpdir()

export const createFolder = (): string => mkdtempSync(join(parent, 'program-'))

const emptyFolder = createFolder()
const running = new Set<Bun.Subprocess>()

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(emptyFolder, { recursive: true, force: true })
})

/** What commands have shown once and settings hold: no log of any server of the tests may have it. */
const secrets = new Set<string>()
keepSecrets({}, process.env.TEST_TENANTS)

export function keepSecrets(settings: Settings, stdout = ''): void {
  const urls = [settings.DATABASE_URL ?? '', settings.REDIS_URL ?? ''].filter((url) => URL.canParse(url))
  const passwords = urls.map((url) => new URL(url).password)
  const shown = [...stdout.matchAll(/psk_\w{36}|"secret":"([^"]+)"|^secret +(\S+)/gm)]
  for (const secret of [...passwords, ...shown.map(([all, ...groups]) => groups.find(Boolean) ?? all)]) {
    if (secret) secrets.add(secret)
  }
}

function refuseSecrets(log: string): void {
  const found = [...secrets].filter((secret) => log.includes(secret))
  if (found.length > 0) throw new Error(`The log of a server has ${found.length} secrets in it`)
}

function environment(settings: Settings): Settings {
  const { PATH, HOME, TMPDIR, TZ } = process.env
  // Port 0, because whichever other is free now may be taken in a moment.
  return { PATH, HOME, TMPDIR, TZ, PORT: '0', ...settings }
}

function launch(command: string[], settings: Settings, cwd: string, stdin: Blob | 'ignore' = 'ignore') {
  const child = Bun.spawn(command, { cwd, env: environment(settings), stdin, stdout: 'pipe', stderr: 'pipe' })
  running.add(child)
  child.exited.then(() => running.delete(child))
  return child
}

export async function run(
  args: string[],
  { settings = {}, stdin, cwd = emptyFolder }: { settings?: Settings; stdin?: string; cwd?: string } = {},
): Promise<Finished> {
  const child = launch([PROGRAM, ...args], settings, cwd, stdin === undefined ? 'ignore' : new Blob([stdin]))
  const lastResort = setTimeout(() => child.kill('SIGKILL'), RUN_MS)
  const [stdout, stderr, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  clearTimeout(lastResort)
  keepSecrets(settings, stdout)
  return { status, stdout, stderr }
}

/** The one result of a command that must succeed. */
export async function runForOne(args: string[], settings: Settings): Promise<Record<string, string>> {
  const { status, stdout, stderr } = await run([...args, '--json'], { settings })
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`)
  return JSON.parse(stdout)
}

/** Starts `serve` and waits until it says where it serves. */
export async function startServer(
  settings: Settings,
  args: string[] = [],
  cwd = emptyFolder,
  program = [PROGRAM],
): Promise<Server> {
  const child = launch([...program, 'serve', ...args], settings, cwd)
  let stdout = ''
  let stderr = ''
  let isServing = false
  const serving = Promise.withResolvers<string>()
  const read = Promise.all([
    follow(child.stdout, (text) => {
      // A soak logs more than memory should hold.
      stdout = stdout.length > MAX_LOG ? text : stdout + text
      const started = isServing ? undefined : readLog(stdout).find(({ msg }) => msg === 'serving')
      if (!started) return
      isServing = true
      serving.resolve(started.url)
    }),
    follow(child.stderr, (text) => {
      stderr += text
    }),
  ])
  const end = async () => {
    const status = await child.exited
    await read
    keepSecrets(settings)
    refuseSecrets(stdout + stderr)
    return status
  }
  end().then((status) => serving.reject(new Error(`serve ended with ${status} before it served: ${stderr}${stdout}`)))
  const lastResort = setTimeout(() => child.kill('SIGKILL'), START_MS)
  const url = await serving.promise
  clearTimeout(lastResort)
  return {
    url,
    pid: child.pid,
    stdout: () => stdout,
    stderr: () => stderr,
    log: () => readLog(stdout),
    ended: end,
    async stop() {
      child.kill('SIGTERM')
      return end()
    },
    async kill() {
      child.kill('SIGKILL')
      await end()
    },
  }
}

async function follow(stream: ReadableStream<Uint8Array>, onText: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  for await (const chunk of stream) onText(decoder.decode(chunk, { stream: true }))
}

const readLog = (stdout: string): LogLine[] =>
  stdout
    .split('\n')
    .slice(0, -1)
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
