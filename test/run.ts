// Runs every test against real services, once on Postgres and once on the embedded engine; then the faults.
// bun test/run.ts [what `bun test` takes: file filters, -t name, …]
import { join } from 'node:path'
import { cleanEnvironment, farTimeZones } from './environment.ts'
import { findTestPrograms, startServices } from './services.ts'
import { makeTemplates } from './templates.ts'

interface Count {
  passed: number
  failed: number
}

const ROOT = join(import.meta.dir, '..')
// What does not depend on the engine that the tests are run on is run in the first pass alone.
const ONCE = [
  'test/once/**',
  'test/lib/**',
  // These open the embedded engine themselves.
  'test/db/embedded*',
  // This is about the file; what a restore leaves behind on either engine is in everything.test.ts.
  'test/backup/damage.test.ts',
]
// How many files run at a time, each with a database of its own. Tests wait much, but more at a time would make a service
// miss its own deadlines; the embedded engine keeps a thread of each service busy.
const WORKERS = { postgres: 2, embedded: 1 }

const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interruption.abort())

const total: Count = { passed: 0, failed: 0 }
const cleanups: (() => Promise<void>)[] = []

try {
  await runAll(process.argv.slice(2))
} catch (error) {
  fail(error)
}
for (const cleanup of cleanups.reverse()) await cleanup().catch(fail)
if (total.passed + total.failed === 0) fail('No tests ran')
console.log(`${total.passed} passed, ${total.failed} failed`)
process.exit(total.failed === 0 ? 0 : 1)

async function runAll(args: string[]): Promise<void> {
  await build()
  const programs = await findTestPrograms()
  const services = await startServices()
  cleanups.push(services.stop)
  const templates = await makeTemplates(services.databaseUrl, interruption.signal)
  cleanups.push(templates.remove)

  const env = {
    ...cleanEnvironment(),
    ...templates.env,
    TEST_DATABASE_URL: services.databaseUrl,
    TEST_REDIS_URL: services.redisUrl,
    ...programs,
    // Makes `test.only` an error; otherwise it leaves out the rest without a word.
    CI: 'true',
  }
  await runTests({ ...env, TEST_ENGINE: 'postgres' }, args)
  await runTests({ ...env, TEST_ENGINE: 'embedded', TZ: farTimeZones.embedded }, [
    ...ONCE.map((pattern) => `--path-ignore-patterns=${pattern}`),
    ...args,
  ])
  // A run of named tests leaves these out: they have a command of their own.
  if (args.length === 0) await runFaults()
}

async function build(): Promise<void> {
  const child = Bun.spawn([process.execPath, '--no-env-file', 'scripts/build.ts'], {
    cwd: ROOT,
    stdio: ['ignore', 'inherit', 'inherit'],
    signal: interruption.signal,
  })
  if ((await child.exited) !== 0) throw new Error('The binary could not be built')
}

async function runTests(
  env: Record<string, string | undefined> & { TEST_ENGINE: keyof typeof WORKERS },
  args: string[],
): Promise<void> {
  console.log(`\nTests on ${env.TEST_ENGINE}`)
  // No orphans: a server that a failed test has left running would outlive its database.
  // The time of a test is there to end one that hangs, however busy the machine is.
  const options = [
    '--no-orphans',
    '--timeout=120000',
    `--parallel=${WORKERS[env.TEST_ENGINE]}`,
    '--no-isolate',
    '--max-concurrency=4',
  ]
  const child = Bun.spawn([process.execPath, '--no-env-file', 'test', ...options, ...args], {
    cwd: ROOT,
    env: process.stderr.isTTY ? { FORCE_COLOR: '1', ...env } : env,
    stdio: ['ignore', 'inherit', 'pipe'],
    signal: interruption.signal,
  })
  const text = await showAndKeep(child.stderr)
  const count = countTests(text, await child.exited)
  total.passed += count.passed
  total.failed += count.failed
}

/** Last and alone: its load takes the whole machine, and it ends servers, so it starts its own. */
async function runFaults(): Promise<void> {
  console.log('\nTests under faults')
  const child = Bun.spawn([process.execPath, '--no-env-file', 'test/faults/run.ts'], {
    cwd: ROOT,
    env: cleanEnvironment(),
    stdio: ['ignore', 'pipe', 'inherit'],
    signal: interruption.signal,
  })
  const text = await showAndKeep(child.stdout)
  const [, passed, failed] = text.match(/^(\d+) passed, (\d+) failed\n$/m) ?? []
  total.passed += Number(passed ?? 0)
  total.failed += Math.max(Number(failed ?? 1), (await child.exited) === 0 ? 0 : 1)
}

/** Bun reports on stderr. Its JUnit file would not do: it leaves out files that fail to load. */
async function showAndKeep(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream) {
    process.stderr.write(chunk)
    text += decoder.decode(chunk, { stream: true })
  }
  return Bun.stripANSI(text)
}

/** Skipped tests and tests to do count as failed: a guarantee that was not checked is not held. */
function countTests(text: string, exitCode: number): Count {
  const summary = [...text.matchAll(/((?:\n *\d+ .*)+)\nRan \d+ tests? across /g)].at(-1)?.[1]
  if (summary === undefined) {
    // Filters may name only files of the other pass.
    if (text.includes('did not match any test files')) return { passed: 0, failed: 0 }
    console.error('The tests ended without a summary')
    return { passed: 0, failed: 1 }
  }
  const lineOf = (word: string) => Number(summary.match(new RegExp(`\\n *(\\d+) ${word}`))?.[1] ?? 0)
  const failed = lineOf('fail') + lineOf('skip') + lineOf('todo')
  // A run can end badly after its last test has passed.
  return { passed: lineOf('pass'), failed: exitCode === 0 ? failed : Math.max(failed, 1) }
}

function fail(error: unknown): void {
  console.error(error instanceof Error ? error.message : error)
  total.failed++
}
