import { afterEach, expect, mock, spyOn, test } from 'bun:test'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type postgres from 'postgres'
import { openEmbedded } from '../../src/db/embedded.ts'
import { openEngine } from '../../src/db/embedded_engine.ts'
import { Backend, Session } from '../../src/db/embedded_session.ts'
import { createFolder, rejectionOf } from '../program.ts'
import { openDriver } from './embedded_driver.ts'

const root = createFolder()
const children = new Set<ChildProcess>()

// A test that fails halfway must not affect the others.
afterEach(() => {
  mock.restore()
  for (const child of children) child.kill('SIGKILL')
  children.clear()
})

/** The engine in the thread of the test, where the calls of its file system can be spied on. */
async function openHere(dir: string, onFailure: (error: Error) => void = () => {}) {
  fs.mkdirSync(dir, { recursive: true })
  const engine = await openEngine(join(dir, 'pgdata'))
  const backend = new Backend(engine.execute, onFailure)
  return { connect: () => new Session(backend), close: engine.close }
}

/** Runs a program of this tree in another process, after a shell has set its limits, and gives its lines as they come. */
function runChild(
  code: string,
  dir: string,
  limits = 'true',
): { child: ChildProcess; lines: AsyncIterableIterator<string> } {
  const child = spawn('bash', ['-c', `${limits}; exec "$@"`, 'bash', process.execPath, '-e', code, dir], {
    cwd: join(import.meta.dirname, '../..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.add(child)
  const input = child.stdout as NonNullable<typeof child.stdout>
  return { child, lines: createInterface({ input })[Symbol.asyncIterator]() }
}

async function reopen(dir: string, read: (sql: postgres.Sql) => Promise<postgres.RowList<postgres.Row[]>>) {
  const engine = await openEmbedded(dir)
  const driver = openDriver(engine)
  const rows = await read(driver)
  await driver.end()
  await engine.close()
  return [...rows]
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) throw new Error('the child ended before it was killed')
  child.kill('SIGKILL')
  await once(child, 'exit')
}

test('has a commit on the disk before it is acknowledged, and the tables at a checkpoint', async () => {
  const dir = join(root, 'synced')
  const engine = await openHere(dir)
  const driver = openDriver(engine)
  await driver`create table synced (n int)`
  const paths: string[] = []
  const original = fs.fsyncSync
  const spy = spyOn(fs, 'fsyncSync').mockImplementation((fd) => {
    paths.push(fs.readlinkSync(`/proc/self/fd/${fd}`))
    original(fd)
  })
  await driver`insert into synced values (1)`
  expect(paths.map((path) => path.includes('/pg_wal/'))).toEqual([true])
  await driver`checkpoint`.simple()
  const [table] = await driver`select pg_relation_filepath('synced') as path`
  spy.mockRestore()
  expect(paths).toContain(join(dir, 'pgdata', table?.path))
  expect(paths).toContain(join(dir, 'pgdata/global/pg_control'))
  await driver.end()
  await engine.close()
})

test('stops for good when a write to disk fails, acknowledges nothing and loses nothing', async () => {
  const dir = join(root, 'rejecting')
  const failures: Error[] = []
  const engine = await openHere(dir, (error) => failures.push(error))
  const driver = openDriver(engine, { backoff: false })
  await driver`create table acknowledged (n int)`
  await driver`insert into acknowledged values (1)`
  const spy = spyOn(fs, 'fsyncSync').mockImplementation(() => {
    throw Object.assign(new Error('EIO'), { code: 'EIO' })
  })
  expect(await rejectionOf(driver`insert into acknowledged values (2)`)).toContain('the embedded database has stopped')
  spy.mockRestore()
  expect(await rejectionOf(driver`select 1`)).toContain('the embedded database has stopped')
  expect(failures.length).toBe(1)
  await driver.end({ timeout: 0 })
  expect(await reopen(dir, (sql) => sql`select n from acknowledged where n = 1`)).toHaveLength(1)
})

test('goes on writing its log when connections take all descriptors but those of its own files', async () => {
  const engine = await openHere(join(root, 'crowded'))
  const driver = openDriver(engine)
  const original = fs.openSync
  let refused = ''
  const spy = spyOn(fs, 'openSync').mockImplementation((path, ...rest) => {
    if (refused || !String(path).includes('xlogtemp')) return original(path, ...rest)
    refused = String(path)
    throw Object.assign(new Error('EMFILE'), { code: 'EMFILE' })
  })
  try {
    while (!refused) await driver`select pg_switch_wal(), pg_logical_emit_message(true, '', 'x')`
    expect(await driver`select 1 as n`).toEqual([{ n: 1 }] as never)
  } finally {
    spy.mockRestore()
    await driver.end()
    await engine.close()
  }
})

/** Fills the engine's log, and prints each commit that is acknowledged. */
const logWriter = `
  import { openEmbedded } from './src/db/embedded.ts'
  import { openDriver } from './test/db/embedded_driver.ts'
  const engine = await openEmbedded(process.argv.at(-1), { onFailure: ({ message }) => { console.log(message); process.exit(1) } })
  const driver = openDriver(engine)
  await driver\`create table acknowledged (n int)\`
  for (let n = 0; n < 10; n++) {
    await driver.begin(async (sql) => {
      await sql\`insert into acknowledged values (\${n})\`
      await sql\`select pg_logical_emit_message(true, '', repeat('x', 1000000))\`
    })
    console.log(n)
  }
  process.exit(0)`

test('ends when its log cannot be written in a commit, and the next start has what was acknowledged', async () => {
  const dir = join(root, 'full')
  // The log begins a new file, which the limit then keeps from being filled.
  await reopen(dir, (sql) => sql`select pg_switch_wal()`)
  const { child, lines } = runChild(logWriter, dir, `trap '' XFSZ; ulimit -f 3500`)
  const ended = once(child, 'exit')
  const printed = await Array.fromAsync(lines)
  expect(printed.pop()).toMatch(/^the embedded database has stopped: .* PANIC: .*could not write to log file/)
  expect((await ended)[0]).toBe(1)
  expect(printed).not.toEqual([])
  const known = await reopen(dir, (sql) => sql`select n from acknowledged order by n`)
  expect(known.map(({ n }) => `${n}`).slice(0, printed.length)).toEqual(printed)
})

test('says what is wrong with files that it cannot use, and frees the data directory', async () => {
  const old = join(root, 'old')
  fs.mkdirSync(join(old, 'pgdata'), { recursive: true })
  expect(await rejectionOf(openEmbedded(old))).toContain('is not a Postgres data directory')
  fs.writeFileSync(join(old, 'pgdata/PG_VERSION'), '17\n')
  expect(await rejectionOf(openEmbedded(old))).toContain('was written by PostgreSQL 17')
  fs.writeFileSync(join(old, 'pgdata/PG_VERSION'), '18\n')
  expect(await rejectionOf(openEmbedded(old))).toContain('did not start')
  // Each attempt has freed the data directory, so the next start can use it.
  fs.rmSync(join(old, 'pgdata'), { recursive: true })
  await (await openEmbedded(old)).close()
})

test('opens a directory whose first start was killed while it was being made', async () => {
  const dir = join(root, 'half')
  const { child, lines } = runChild(
    `import fs from 'node:fs'
    import { openEngine } from './src/db/embedded_engine.ts'
    fs.renameSync = () => { console.log('unpacked'); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) }
    fs.mkdirSync(process.argv.at(-1))
    await openEngine(process.argv.at(-1) + '/pgdata')`,
    dir,
  )
  expect((await lines.next()).value).toBe('unpacked')
  await kill(child)
  expect(fs.readdirSync(dir).sort()).toEqual(['pgdata.new'])
  // The folder is left as if the kill had come in the middle of the unpacking.
  fs.rmSync(join(dir, 'pgdata.new/global'), { recursive: true })
  expect((await reopen(dir, (sql) => sql`select 1 as n`))[0]?.n).toBe(1)
  expect(fs.readdirSync(dir).sort()).toEqual(['lock', 'pgdata'])
})

test('opens a directory with the empty lock file of a start that was killed while Postgres wrote it', async () => {
  const directory = join(root, 'killed-at-lock')
  await (await openEmbedded(directory)).close()
  fs.writeFileSync(join(directory, 'pgdata/postmaster.pid'), '')
  await (await openEmbedded(directory)).close()
})

test('closes cleanly: the next start has nothing to recover', async () => {
  const dir = join(root, 'clean')
  const engine = await openEmbedded(dir)
  const driver = openDriver(engine)
  await driver`create table left_open (n int)`
  await driver.unsafe('begin; insert into left_open values (1)')
  await engine.close()
  // The fifth word of the control file is the state; 1 is "shut down".
  expect(fs.readFileSync(join(dir, 'pgdata/global/pg_control')).readUInt32LE(16)).toBe(1)
  await driver.end()
  expect(await reopen(dir, (sql) => sql`select * from left_open`)).toEqual([])
})

test('a connection that comes while it closes is rejected, which is no failure', async () => {
  const failures: string[] = []
  const engine = await openEmbedded(join(root, 'late'), { onFailure: ({ message }) => failures.push(message) })
  await engine.close()
  const late = openDriver(engine)
  expect(await rejectionOf(late`select 1`)).toContain('it was closed')
  expect(failures).toEqual([])
  await late.end({ timeout: 0 })
})
