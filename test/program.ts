// Drives the real binary as an operator would: in an empty folder, and with no more environment than it is given.
import { expect } from 'bun:test'
import { mkdtempSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { dirname, join } from 'node:path'

export type Settings = Record<string, string | undefined>

export type Finished = { status: number; stdout: string; stderr: string }

// biome-ignore lint/suspicious/noExplicitAny: a test looks at results of every shape
export type Row = Record<string, any>

export type Server = {
  url: string
  pid: number
  stdout(): string
  stderr(): string
  /** Sends it SIGTERM, and resolves with the exit status once it has ended. */
  stop(): Promise<number>
  /** The exit status, once it has ended. */
  ended(): Promise<number>
  /** Ends it as a crash would. */
  kill(): Promise<void>
}

export type Operator = {
  /** The results of a command that must succeed, each from its own line of JSON. */
  json(...args: string[]): Promise<Row[]>
  /** The one result of such a command. */
  one(...args: string[]): Promise<Row>
  /** What a person reads on standard output. */
  plain(...args: string[]): Promise<string>
  /** The one line that a command fails with. */
  errorLine(...args: string[]): Promise<string>
}

const PROGRAM = join(import.meta.dir, '../dist/prompt-signals')
/**
 * Far above what any command of the tests takes on a busy machine, and below the time that a test has, so that one that
 * hangs fails its test by its status.
 */
const RUN_MS = 90_000
const START_MS = 90_000
/** No promise: a test that has to be quick measures the time itself. */
const EVENTUALLY_MS = 20_000

/** A folder that the end of the run removes, because it is beside the template of the databases. */
export function createFolder(): string {
  const template = process.env.TEST_TEMPLATE_DIR
  if (!template) throw new Error('TEST_TEMPLATE_DIR is not set; the test runner sets it: bun run test [file …]')
  return mkdtempSync(join(dirname(template), 'program-'))
}

const emptyFolder = createFolder()

/** What commands have shown once and settings hold: no log of any server of the tests may have it. */
const secrets = new Set<string>()

function keepSecrets(settings: Settings, stdout = ''): void {
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

/** The runner's --no-orphans ends whatever a failed test leaves running. */
function launch(command: string[], settings: Settings, cwd: string, stdin: Blob | 'ignore' = 'ignore') {
  return Bun.spawn(command, { cwd, env: environment(settings), stdin, stdout: 'pipe', stderr: 'pipe' })
}

/** Runs one command to its end. */
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
  const serving = Promise.withResolvers<string>()
  const read = Promise.all([
    follow(child.stdout, (text) => {
      stdout += text
      const url = addressIn(stdout)
      if (url) serving.resolve(url)
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

/** From the log line that says so, once it is whole. */
const addressIn = (log: string): string | undefined =>
  log
    .split('\n')
    .slice(0, -1)
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
    .find(({ msg }) => msg === 'serving')?.url

/** Runs commands on one database, as an operator does. */
export function createOperator(settings: Settings): Operator {
  async function json(...args: string[]): Promise<Row[]> {
    const { status, stdout, stderr } = await run([...args, '--json'], { settings })
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
    return readJsonLines(stdout)
  }
  return {
    json,
    async one(...args) {
      const rows = await json(...args)
      expect(rows).toHaveLength(1)
      return rows[0] as Row
    },
    async plain(...args) {
      const { status, stdout, stderr } = await run(args, { settings })
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
      return stdout
    },
    errorLine: async (...args) => errorLineOf(await run(args, { settings })),
  }
}

/** One JSON object a line, and nothing else. */
export function readJsonLines(stdout: string): Row[] {
  expect(stdout).toMatch(/^(\{.*\}\n)*$/)
  return stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}

/** The message of a command that failed: one line on standard error, and nothing done or shown. */
export function errorLineOf({ status, stdout, stderr }: Finished): string {
  expect({ status, stdout, stderr }).toEqual({
    status: 1,
    stdout: '',
    stderr: expect.stringMatching(/^prompt-signals: [^\n]+\n$/),
  })
  return stderr.slice('prompt-signals: '.length, -1)
}

/** An organisation with a key and a prompt, made by the operator. */
export async function createTenant({ one }: Operator, monthlyLimit = 1_000) {
  const { id: org } = await one(
    'orgs',
    'create',
    '--name',
    'Test',
    '--plan',
    'free',
    '--monthly-limit',
    `${monthlyLimit}`,
  )
  const [{ id: keyId, key }, { id: prompt }] = (await Promise.all([
    one('keys', 'create', '--org', org),
    one('prompts', 'create', '--org', org, '--name', 'Test'),
  ])) as [Row, Row]
  return { org, keyId, key, prompt } as { org: string; keyId: string; key: string; prompt: string }
}

/** Polls until the value is the wanted one; past the deadline the last value is compared, and shown. */
export async function eventually(read: () => unknown, wanted: unknown, deadlineMs = EVENTUALLY_MS): Promise<void> {
  const giveUpAt = performance.now() + deadlineMs
  let answer = await read()
  while (!Bun.deepEquals(answer, wanted) && performance.now() < giveUpAt) {
    await Bun.sleep(20)
    answer = await read()
  }
  expect(answer).toEqual(wanted)
}

/** Waits until the process handles Ctrl-C: one that comes earlier ends a process that has hardly begun, without a word. */
export const awaitSignalHandlers = (pid: number): Promise<void> =>
  eventually(() => {
    const caught = /^SigCgt:\s+(\w+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return Boolean(BigInt(`0x${caught}`) & (1n << BigInt(constants.signals.SIGINT - 1)))
  }, true)

/**
 * The message of the error that a promise rejects with. In place of `rejects`, which waits for the promise without
 * letting the messages of workers in, and so for ever for the embedded engine.
 */
export const rejectionOf = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'it did not reject',
    (error: Error) => error.message,
  )
