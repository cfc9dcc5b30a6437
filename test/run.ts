// Runs the tests against real services: on Postgres, the files of BOTH on the embedded engine too, and two faults.
// bun test/run.ts [--all] [what `bun test` takes: file filters, -t name, …]
// --all: every file on both engines, every fault, a cluster, and the full volumes of random tests.
// Named files run on both engines.
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildBinary } from './build.ts'
import { cleanEnvironment, farTimeZones } from './environment.ts'
import { canProvide, clusterPrograms } from './programs.ts'
import { findTestPrograms, startServices, withoutSync } from './services.ts'
import { makeTemplates } from './templates.ts'

interface Count {
  passed: number
  failed: number
}

type Engine = 'postgres' | 'embedded'

const ROOT = join(import.meta.dir, '..')
/** Depends on what differs between the engines: SQL, locks, files, and the life of the process. `--all` runs the rest. */
const BOTH = [
  'backup/commands',
  'binary/{process,shutdown}',
  'cli/{alone,interrupts,serving,transcripts}',
  'db/{migrations,rows_read,transactions}',
  'github/{merges,recorded}',
  'history/{history,record}',
  'http/late_changes',
  'impact/{attribution,impact}',
  'keys/browser_limit',
  'limit/*',
  'prompts/{erase,rest}',
  'signals/{batch,erase,export,idempotency,list,signals}',
  'stats/*',
  'webhooks/{thresholds,verdicts}',
]
/** Never on the embedded engine: it does not matter to these, or they need the other one, or open it themselves. */
const ONCE = ['test/once/**', 'test/lib/**', 'test/releases/**', 'test/db/embedded*', 'test/backup/damage.test.ts']
/** Only with --all: what stands around the service, and what takes long. */
const ONLY_ALL = 'test/once/{absent_standby,busy_engine,conformance,haproxy,move,pooler,tls,unreachable}.test.ts'
/** How many files run at a time. More would make services miss their deadlines: the embedded engine is a busy thread. */
const WORKERS = { postgres: 3, embedded: 2 }
const SLOWEST = 10
/** Of the output that leads to a failure: where it is long, its end says why. */
const FAILURE_LINES = 40

const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => interruption.abort())

const total: Count = { passed: 0, failed: 0 }
const durations: { file: string; seconds: number }[] = []
const failures: string[] = []
const cleanups: (() => Promise<void>)[] = []

try {
  await runAll(process.argv.slice(2))
} catch (error) {
  fail(error)
}
for (const cleanup of cleanups.reverse()) await cleanup().catch(fail)
showSlowest()
showFailures()
if (total.passed + total.failed === 0) fail('No tests ran')
console.log(`${total.passed} passed, ${total.failed} failed`)
process.exit(total.failed === 0 ? 0 : 1)

async function runAll(given: string[]): Promise<void> {
  const isFull = given.includes('--all')
  const args = given.filter((arg) => arg !== '--all')
  const isWhole = args.length === 0
  await buildBinary(interruption.signal)
  const programs = await findTestPrograms()
  const services = await startServices(withoutSync)
  cleanups.push(services.stop)
  const templates = await makeTemplates(services.databaseUrl, interruption.signal)
  cleanups.push(templates.remove)

  const env = {
    ...cleanEnvironment(),
    ...templates.env,
    TEST_DATABASE_URL: services.databaseUrl,
    TEST_REDIS_URL: services.redisUrl,
    TEST_FULL: isFull ? 'yes' : '',
    ...programs,
    // Makes `test.only` an error; otherwise it leaves out the rest without a word.
    CI: 'true',
  }
  await runTests('postgres', env, [...(isFull || !isWhole ? [] : [`--path-ignore-patterns=${ONLY_ALL}`]), ...args])
  const chosen = isFull || !isWhole ? ONCE.map((pattern) => `--path-ignore-patterns=${pattern}`) : filesOfBoth()
  await runTests('embedded', { ...env, TZ: farTimeZones.embedded }, [...chosen, ...args])
  // Named tests leave these out: they have their own command.
  if (!isWhole) return
  await runCommand('Tests under faults', 'test/faults/run.ts', isFull ? [] : ['--few'])
  if (!isFull) return
  if (canProvide(clusterPrograms)) await runCommand('Tests on a cluster', 'test/faults/run.ts', ['--cluster'])
  else console.log('\nTests on a cluster left out: `bun run test:cluster` says what to install')
}

/** A pattern without a file has outlived it. */
function filesOfBoth(): string[] {
  return BOTH.flatMap((pattern) => {
    const files = [...new Bun.Glob(`test/${pattern}.test.ts`).scanSync(ROOT)]
    if (files.length === 0) throw new Error(`BOTH names no file: ${pattern}`)
    return files.map((file) => `./${file}`)
  })
}

async function runTests(engine: Engine, env: Record<string, string | undefined>, args: string[]): Promise<void> {
  console.log(`\nTests on ${engine}`)
  const report = join(tmpdir(), `prompt-signals-${process.pid}-${engine}.xml`)
  cleanups.push(() => rm(report, { force: true }))
  const options = [
    // A server that a failed test has left running would outlive its database.
    '--no-orphans',
    // Ends a test that hangs, however busy the machine is.
    '--timeout=120000',
    `--parallel=${WORKERS[engine]}`,
    '--no-isolate',
    '--max-concurrency=4',
    '--reporter=junit',
    `--reporter-outfile=${report}`,
  ]
  const child = Bun.spawn([process.execPath, '--no-env-file', 'test', ...options, ...args], {
    cwd: ROOT,
    env: { ...(process.stderr.isTTY ? { FORCE_COLOR: '1' } : {}), ...env, TEST_ENGINE: engine },
    stdio: ['ignore', 'inherit', 'pipe'],
    signal: interruption.signal,
  })
  const text = await showAndKeep(child.stderr)
  const count = countTests(text, await child.exited)
  total.passed += count.passed
  total.failed += count.failed
  keepFailures(engine, text)
  await readDurations(engine, report)
}

/** Last, and when nothing else runs: such a command takes the whole machine. It stops servers, so it starts its own. */
async function runCommand(title: string, script: string, args: string[] = []): Promise<void> {
  console.log(`\n${title}`)
  const child = Bun.spawn([process.execPath, '--no-env-file', script, '--built', ...args], {
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

async function showAndKeep(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stream) {
    process.stderr.write(chunk)
    text += decoder.decode(chunk, { stream: true })
  }
  return Bun.stripANSI(text)
}

/**
 * From what Bun prints: its JUnit file leaves out files that fail to load. Skipped tests and tests to do count as failed,
 * because a guarantee that was not checked is not held.
 */
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

/** What is printed between the end of one test and the next belongs to the latter. */
function keepFailures(engine: Engine, text: string): void {
  let lines: string[] = []
  for (const line of text.split(/\n\d+ tests? failed:\n/)[0]?.split('\n') ?? []) {
    lines.push(line)
    if (line.startsWith('(fail)')) failures.push(`On ${engine}:\n${lines.slice(-FAILURE_LINES).join('\n')}`)
    if (/^\((pass|fail)\)/.test(line)) lines = []
  }
}

async function readDurations(engine: Engine, report: string): Promise<void> {
  const file = Bun.file(report)
  if (!(await file.exists())) return
  for (const [, name, seconds] of (await file.text()).matchAll(/^ {2}<testsuite name="([^"]+)".* time="([\d.]+)"/gm)) {
    durations.push({ file: `${name} (${engine})`, seconds: Number(seconds) })
  }
}

function showSlowest(): void {
  const slowest = durations.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST)
  if (slowest.length > 1) console.log('\nThe slowest files')
  for (const { file, seconds } of slowest) console.log(`${seconds.toFixed(1).padStart(6)} s  ${file}`)
}

/** Again, and last: a log is often kept only by its end. */
function showFailures(): void {
  if (failures.length > 0) console.log(`\nThe failures\n${failures.join('\n\n')}\n`)
}

function fail(error: unknown): void {
  console.error(error instanceof Error ? error.message : error)
  total.failed++
}
