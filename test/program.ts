// What tests do with the built binary: run commands as an operator, and wait for what comes of it.
import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { systemClock } from '../src/clock.ts'
import type { Db } from '../src/db/client.ts'
import { type Finished, keepSecrets, PROGRAM, run, type Server, type Settings } from './binary.ts'
import { withPostgres } from './services.ts'
import { insertTenant, openDb, type Tenant } from './tenant.ts'

export { createFolder, type Finished, PROGRAM, run, type Server, type Settings, startServer } from './binary.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test looks at results of every shape
export type Row = Record<string, any>

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

/** No promise: a test that has to be quick measures the time itself. */
const EVENTUALLY_MS = 20_000

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

/** Runs a command on a terminal and returns what it shows. The input is typed once the command asks. */
export async function onTerminal(args: string[], settings: Settings, typed = '', status = 0): Promise<string> {
  let shown = ''
  const decoder = new TextDecoder()
  const child = Bun.spawn([PROGRAM, ...args], {
    env: { PATH: process.env.PATH, ...settings },
    terminal: {
      cols: 120,
      rows: 30,
      data: (terminal, bytes) => {
        const hadAsked = shown.includes('? ')
        shown += decoder.decode(bytes, { stream: true })
        if (typed !== '' && !hadAsked && shown.includes('? ')) terminal.write(typed)
      },
    },
  })
  expect(await child.exited).toBe(status)
  child.terminal?.close()
  return shown
}

/** Beside a server or without one, and without the three processes that the commands would take. */
export async function createTenant(settings: Settings, monthlyLimit = 1_000): Promise<Tenant> {
  const db = await openDb(settings)
  const tenant = await insertTenant(db, systemClock, monthlyLimit).finally(db.close)
  keepSecrets({}, tenant.key)
  return tenant
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

/** Repeats a call, one after another, until the work ends. Returns its result. */
export async function during<T>(work: Promise<T>, call: () => Promise<unknown>): Promise<T> {
  let isOver = false
  const ended = work.finally(() => {
    isOver = true
  })
  while (!isOver) await call()
  return ended
}

/** Does the work while another connection to the Postgres of these settings holds the locks of the statement. */
export const whileLocked = <T>(settings: Settings, statement: string, work: () => Promise<T>): Promise<T> =>
  withPostgres(settings.DATABASE_URL as string, (sql) =>
    sql.begin(async (on) => {
      await on.unsafe(statement)
      return work()
    }),
  ) as Promise<T>

/** Waits until one statement with this text waits for a lock. Asks outside of the caller's transaction. */
export const untilLocked = ({ sql }: Db, text: string): Promise<void> =>
  eventually(async () => {
    const waiting = await sql`
      select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like ${`%${text}%`}::text`
    return waiting.length
  }, 1)

/** Measures time, without the pauses in which a busy machine ran neither this process nor, most likely, the service. */
export function startStopwatch(): () => number {
  const [startedAt, tickMs] = [performance.now(), 20]
  let [tickedAt, pausedMs] = [startedAt, 0]
  const timer = setInterval(() => {
    pausedMs += Math.max(0, performance.now() - tickedAt - tickMs)
    tickedAt = performance.now()
  }, tickMs).unref()
  return () => {
    clearInterval(timer)
    return performance.now() - startedAt - pausedMs
  }
}

export const peakMemoryOf = ({ pid }: Server): number =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

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
