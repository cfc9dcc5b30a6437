// Drives the binary as test/program.ts does, but without the test runner around it, which would end what is left.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type Settings = Record<string, string>

export type Server = {
  url: string
  pid: number
  /** Sends it SIGTERM, and resolves with the exit status once it has ended. */
  stop(): Promise<number>
  /** Ends it as a crash would. */
  kill(): Promise<void>
}

const PROGRAM = join(import.meta.dir, '../../dist/prompt-signals')
const RUN_MS = 60_000
const START_MS = 60_000

/** Empty, because the files of a working directory must not matter. */
const folder = mkdtempSync(join(tmpdir(), 'ps-faults-'))
const running = new Set<Bun.Subprocess>()

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

function launch(args: string[], settings: Settings) {
  const { PATH, HOME, TMPDIR, TZ } = process.env
  const child = Bun.spawn([PROGRAM, ...args], {
    cwd: folder,
    env: { PATH, HOME, TMPDIR, TZ, PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.add(child)
  child.exited.then(() => running.delete(child))
  return child
}

/** Runs one command to its end. */
export async function run(args: string[], settings: Settings) {
  const child = launch(args, settings)
  const lastResort = setTimeout(() => child.kill('SIGKILL'), RUN_MS)
  const [stdout, stderr, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  clearTimeout(lastResort)
  return { status, stdout, stderr }
}

/** The one result of a command that must succeed. */
export async function runForOne(args: string[], settings: Settings): Promise<Record<string, string>> {
  const { status, stdout, stderr } = await run([...args, '--json'], settings)
  if (status !== 0) throw new Error(`${args.join(' ')} ended with ${status}: ${stderr}`)
  return JSON.parse(stdout)
}

/** Starts `serve` and waits until it says where it serves. */
export async function startServer(settings: Settings): Promise<Server> {
  const child = launch(['serve'], settings)
  const serving = Promise.withResolvers<string>()
  // The output is read to its end: a full pipe would hold the server up.
  const read = Promise.all([readLines(child.stdout, serving.resolve), child.stderr.text()])
  const end = async () => {
    const status = await child.exited
    await read
    return status
  }
  end().then((status) => serving.reject(new Error(`serve ended with ${status} before it served`)))
  const lastResort = setTimeout(() => child.kill('SIGKILL'), START_MS)
  const url = await serving.promise
  clearTimeout(lastResort)
  return {
    url,
    pid: child.pid,
    stop() {
      child.kill('SIGTERM')
      return end()
    },
    async kill() {
      child.kill('SIGKILL')
      await end()
    },
  }
}

/** The address is in the log line that says so. */
async function readLines(stream: ReadableStream<Uint8Array>, onUrl: (url: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    const line = lines.find((one) => one.includes('"msg":"serving"'))
    if (line) onUrl(JSON.parse(line).url)
  }
}
