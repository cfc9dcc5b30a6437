import { afterAll, afterEach, beforeAll, expect, mock, spyOn, test } from 'bun:test'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Duplex } from 'node:stream'
import postgres from 'postgres'
import { DataDirInUse, lockDataDir } from '../../src/db/data_dir.ts'
import { type Embedded, openEmbedded } from '../../src/db/embedded.ts'
import { openEngine } from '../../src/db/embedded_engine.ts'
import { Backend, Session } from '../../src/db/embedded_session.ts'
import { startEngineThread } from '../../src/db/embedded_thread.ts'

const root = fs.mkdtempSync(join(tmpdir(), 'embedded-'))
let embedded: Embedded
let sql: postgres.Sql

beforeAll(async () => {
  embedded = await openEmbedded(join(root, 'main'))
  sql = openDriver(embedded)
})

afterAll(async () => {
  await sql.end()
  await embedded.close()
  fs.rmSync(root, { recursive: true })
})

const children = new Set<ChildProcess>()

// So that a test that fails halfway takes nothing else down with it.
afterEach(() => {
  mock.restore()
  for (const child of children) child.kill('SIGKILL')
  children.clear()
})

function openDriver(engine: { connect(): Duplex }, more: postgres.Options<Record<string, never>> = {}): postgres.Sql {
  const options = { socket: engine.connect, max: 1, ssl: false as const, onnotice: () => {}, ...more }
  return postgres(options)
}

/** Why a query or an opening failed. */
async function failureOf(work: PromiseLike<unknown>): Promise<string> {
  return Promise.resolve(work).then(
    () => 'nothing failed',
    (error: Error) => error.message,
  )
}

/** The engine in the thread of the test, where the calls of its file system can be spied on. */
async function openHere(dir: string, onFailure: (error: Error) => void = () => {}) {
  fs.mkdirSync(dir, { recursive: true })
  const engine = await openEngine(join(dir, 'pgdata'))
  const backend = new Backend(engine.execute, onFailure)
  return { connect: () => new Session(backend, 'client'), close: engine.close }
}

/** Runs a program of this tree in another process and gives its lines as they come. */
function runChild(code: string, ...args: string[]): { child: ChildProcess; lines: AsyncIterableIterator<string> } {
  const child = spawn(process.execPath, ['-e', code, ...args], {
    cwd: join(import.meta.dirname, '../..'),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.add(child)
  return {
    child,
    lines: createInterface({ input: child.stdout as NonNullable<typeof child.stdout> })[Symbol.asyncIterator](),
  }
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) throw new Error('the child ended before it was killed')
  child.kill('SIGKILL')
  await once(child, 'exit')
}

test('returns the results of prepared, plain and scripted queries with the types of a server', async () => {
  const [row] = await sql`select ${'é'}::text as text, ${['a', 'b "c"', 'NULL', '']}::text[] as list, ${7}::int as int`
  expect({ ...row }).toEqual({ text: 'é', list: ['a', 'b "c"', 'NULL', ''], int: 7 })
  const script = await sql.unsafe<{ n: number }[][]>('select 1 as n; select 2 as n')
  expect(script.map((rows) => rows[0]?.n)).toEqual([1, 2])
  const [settings] = await sql`select current_setting('TimeZone') as zone, current_setting('fsync') as fsync`
  expect({ ...settings }).toEqual({ zone: 'UTC', fsync: 'on' })
})

test('carries parameters and results of several megabytes', async () => {
  const big = 'ü'.repeat(3_000_000)
  const rows = await sql`select ${big}::text || g as text from generate_series(1, 3) g`
  expect(rows.map((row) => row.text === big + (rows.indexOf(row) + 1))).toEqual([true, true, true])
})

test('rejects what fails and keeps every other query of the pipeline', async () => {
  const answers = await Promise.allSettled([0, 1, 2, 0, 4].map((n) => sql`select 4 / ${n}::int as n`))
  expect(answers.map((a) => (a.status === 'fulfilled' ? a.value[0]?.n : a.reason.code))).toEqual([
    '22012',
    4,
    2,
    '22012',
    1,
  ])
  expect(await failureOf(sql`select ${'x'}::int`)).toContain('invalid input syntax')
  expect(await failureOf(sql.unsafe('select 1; select nothing'))).toContain('does not exist')
  expect((await sql`select 1 as n`)[0]?.n).toBe(1)
})

test('rolls back a transaction that throws and keeps one that does not', async () => {
  await sql`create table kept (n int)`
  const failed = sql.begin(async (tx) => {
    await tx`insert into kept values (1)`
    throw new Error('changed my mind')
  })
  expect(await failureOf(failed)).toContain('changed my mind')
  await sql.begin((tx) => tx`insert into kept values (2)`)
  expect((await sql`select n from kept`).map((row) => row.n)).toEqual([2])
})

test('passes on notices, and notifications to a listening connection', async () => {
  const notices: string[] = []
  const other = openDriver(embedded, { onnotice: (notice) => notices.push(notice.message ?? '') })
  await other`do $$ begin raise notice 'look'; end $$`
  expect(notices).toEqual(['look'])
  const notified = Promise.withResolvers<string>()
  await other.listen('news', notified.resolve)
  await sql`select pg_notify('news', 'hello')`
  expect(await notified.promise).toBe('hello')
  await other.end()
})

test('applies the settings of a connection, and rejects it for one that does not exist', async () => {
  const asking = openDriver(embedded, { connection: { application_name: `o'clock` } })
  expect((await asking`show application_name`)[0]?.application_name).toBe(`o'clock`)
  await asking.end()
  const wrong = openDriver(embedded, { connection: { no_such_setting: 'x' } as Record<string, string> })
  expect(await failureOf(wrong`select 1`)).toContain('no_such_setting')
  await wrong.end()
})

test('leaves nothing of a closed connection to the next one', async () => {
  const engine = await openEmbedded(join(root, 'reconnect'))
  const first = openDriver(engine)
  const socket = Promise.withResolvers<Duplex>()
  const torn = openDriver({
    connect: () => {
      const duplex = engine.connect()
      socket.resolve(duplex)
      return duplex
    },
  })
  await first`create table rows (n int)`
  await torn`set work_mem = '1MB'`
  await torn`select ${1}::int`
  await torn.unsafe('begin; insert into rows values (1)')
  const waiting = first`select n from rows`.execute()
  ;(await socket.promise).destroy()
  expect([...(await waiting)]).toEqual([])
  await first.end()
  const fresh = openDriver(engine, { prepare: false, fetch_types: false })
  const [left] =
    await fresh`select current_setting('work_mem') as memory, (select count(*)::int from pg_prepared_statements where name <> '') as statements`
  expect({ ...left }).toEqual({ memory: '4MB', statements: 0 })
  await fresh.end()
  await engine.close()
})

test("drops a closed connection's statements while another stays open", async () => {
  const count = async () => (await sql`select count(*)::int as n from pg_prepared_statements`)[0]?.n
  await count()
  const before = await count()
  const other = openDriver(embedded)
  await other`select ${'one of mine'}::text`
  expect(await count()).toBeGreaterThan(before)
  await other.end()
  expect(await count()).toBe(before)
})

test('puts together messages that arrive in pieces', async () => {
  const split = openDriver({
    connect: () => {
      const duplex = embedded.connect()
      const write = duplex.write.bind(duplex)
      duplex.write = ((bytes: Buffer) =>
        [...bytes].map((byte) => write(Buffer.from([byte]))).at(-1)) as typeof duplex.write
      return duplex
    },
  })
  expect((await split`select ${'whole'}::text as text`)[0]?.text).toBe('whole')
  await split.end()
})

test('checkpoints and vacuums only between the transactions of others', async () => {
  await sql`create table busy as select g as n from generate_series(1, 5000) g`
  const order: string[] = []
  let upkeep: Promise<unknown> | undefined
  await sql.begin(async (tx) => {
    await tx`delete from busy where n > 10`
    upkeep = Promise.all([embedded.checkpoint(), embedded.vacuum()]).then(() => order.push('upkeep'))
    for (let i = 0; i < 20; i++) await tx`select pg_sleep(0)`
    order.push('transaction')
  })
  await upkeep
  expect(order).toEqual(['transaction', 'upkeep'])
})

test('vacuums the tables that changed much, and checkpoints after much was written', async () => {
  await sql`create table churned as select g as n, repeat('x', 500) as filler from generate_series(1, 40000) g`
  const redo = async () => (await sql`select redo_lsn::text as at from pg_control_checkpoint()`)[0]?.at
  const vacuumed = async () =>
    (await sql`select last_vacuum is not null as done from pg_stat_user_tables where relname = 'churned'`)[0]?.done
  const before = await redo()
  expect(await vacuumed()).toBe(false)
  await embedded.maintain()
  expect(await vacuumed()).toBe(true)
  expect(await redo()).not.toBe(before)
  const settled = await redo()
  await embedded.maintain()
  expect(await redo()).toBe(settled)
})

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
  const dir = join(root, 'refusing')
  const failures: Error[] = []
  const engine = await openHere(dir, (error) => failures.push(error))
  const driver = openDriver(engine, { backoff: false })
  await driver`create table acknowledged (n int)`
  await driver`insert into acknowledged values (1)`
  const spy = spyOn(fs, 'fsyncSync').mockImplementation(() => {
    throw Object.assign(new Error('EIO'), { code: 'EIO' })
  })
  expect(await failureOf(driver`insert into acknowledged values (2)`)).toContain('the embedded database has stopped')
  spy.mockRestore()
  expect(await failureOf(driver`select 1`)).toContain('the embedded database has stopped')
  expect(failures.length).toBe(1)
  await driver.end({ timeout: 0 })
  const again = await openEmbedded(dir)
  const reader = openDriver(again)
  expect((await reader`select n from acknowledged where n = 1`).length).toBe(1)
  await reader.end()
  await again.close()
})

test('lets one process at a time use a data directory, and frees it with the process', async () => {
  const dir = join(root, 'locked', 'deep')
  const { child, lines } = runChild(
    `import { lockDataDir } from './src/db/data_dir.ts'
    globalThis.lock = lockDataDir(process.argv.at(-1))
    console.log(lock ? 'mine' : 'taken')
    setInterval(() => lock, 1000)`,
    dir,
  )
  expect((await lines.next()).value).toBe('mine')
  expect(lockDataDir(dir)).toBeUndefined()
  expect(await openEmbedded(dir).catch((error) => error)).toBeInstanceOf(DataDirInUse)
  await kill(child)
  const lock = lockDataDir(dir)
  expect(lock).toBeDefined()
  expect(lockDataDir(dir)).toBeUndefined()
  lock?.release()
  expect(fs.statSync(join(root, 'locked')).mode & 0o777).toBe(0o700)
  expect(fs.statSync(dir).mode & 0o777).toBe(0o700)
})

test('says what is wrong with a data directory it cannot use', async () => {
  const file = join(root, 'file')
  fs.writeFileSync(file, '')
  expect(await failureOf(openEmbedded(file))).toContain(`the data directory ${file} cannot be used`)
  const old = join(root, 'old')
  fs.mkdirSync(join(old, 'pgdata'), { recursive: true })
  expect(await failureOf(openEmbedded(old))).toContain('is not a Postgres data directory')
  fs.writeFileSync(join(old, 'pgdata/PG_VERSION'), '17\n')
  expect(await failureOf(openEmbedded(old))).toContain('was written by PostgreSQL 17')
  fs.writeFileSync(join(old, 'pgdata/PG_VERSION'), '18\n')
  expect(await failureOf(openEmbedded(old))).toContain('did not start')
  lockDataDir(old)?.release()
})

const inserting = `import postgres from 'postgres'
  import { openEmbedded } from './src/db/embedded.ts'
  const embedded = await openEmbedded(process.argv.at(-1))
  const sql = postgres({ socket: embedded.connect, max: 1, ssl: false, onnotice: () => {} })
  await sql\`create table if not exists acknowledged (id int primary key, filler text)\`
  const [{ first }] = await sql\`select coalesce(max(id), 0)::int + 1 as first from acknowledged\`
  for (let id = first; ; id++) {
    await sql\`insert into acknowledged values (\${id}, repeat('x', 2000))\`
    console.log(id)
    if (id % 400 === 0) void embedded.checkpoint()
  }`

test('holds every acknowledged row after kill -9, time after time', async () => {
  const dir = join(root, 'killed')
  let last = 0
  for (const acknowledged of [1, 700, 1500]) {
    const { child, lines } = runChild(inserting, dir)
    const target = last + acknowledged
    for await (const line of lines) {
      last = Number(line)
      if (last === target) child.kill('SIGKILL')
    }
  }
  const engine = await openEmbedded(dir)
  const driver = openDriver(engine)
  const [found] = await driver`select count(*)::int as rows, max(id) as last from acknowledged`
  expect(found?.rows).toBe(found?.last)
  expect(found?.rows).toBeGreaterThanOrEqual(last)
  await driver.end()
  await engine.close()
}, 30_000)

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
  // As if the kill had come in the middle of the unpacking.
  fs.rmSync(join(dir, 'pgdata.new/global'), { recursive: true })
  const engine = await openEmbedded(dir)
  const driver = openDriver(engine)
  expect((await driver`select 1 as n`)[0]?.n).toBe(1)
  await driver.end()
  await engine.close()
  expect(fs.readdirSync(dir).sort()).toEqual(['lock', 'pgdata'])
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
  const again = await openEmbedded(dir)
  const reader = openDriver(again)
  expect([...(await reader`select * from left_open`)]).toEqual([])
  await reader.end()
  await again.close()
})

test('an engine that throws is given up: its sessions end, and the failure is reported', async () => {
  const reported: string[] = []
  const broken = () => Promise.reject(new Error('unreachable'))
  const backend = new Backend(broken, ({ message }) => reported.push(message))
  const sessions = [1, 2].map(() => new Session(backend, 'client').on('error', () => {}))
  const answers = sessions.map((session) => backend.run(session, [Buffer.from('Q')]).catch(({ message }) => message))
  const failure = 'the embedded database has stopped: unreachable'
  expect(await Promise.all(answers)).toEqual([failure, failure])
  expect([reported, backend.failed]).toEqual([[failure], true])
})

/** A thread in the place of the engine's, which opens and then does as the code says. */
const startThread = (code: string) =>
  startEngineThread(
    'nowhere',
    new Worker(
      URL.createObjectURL(
        new Blob([
          `onmessage = ({ data }) => { if (data.open) postMessage({ bytes: new Uint8Array() }); else { ${code} } }`,
        ]),
      ),
    ),
  )

test.each([
  ['ends', 'process.exit(3)', 'its thread has ended'],
  ['fails', 'throw new Error("out of memory")', 'out of memory'],
] as const)(
  'a thread that %s is given up: its pending requests are rejected, and the failure is reported',
  async (_, code, reason) => {
    const thread = await startThread(code)
    expect(await failureOf(thread.execute(new Uint8Array()))).toContain(reason)
    expect(await thread.died).toContain(reason)
    expect(await failureOf(thread.execute(new Uint8Array()))).toContain(reason)
  },
)

test('a thread that does not start says why, and frees the data directory', async () => {
  const dir = join(root, 'unstartable')
  fs.mkdirSync(join(dir, 'pgdata'), { recursive: true })
  expect(await failureOf(openEmbedded(dir))).toContain('is not a Postgres data directory')
  fs.rmSync(join(dir, 'pgdata'), { recursive: true })
  await (await openEmbedded(dir)).close()
})

test('a statement that waits for the backend longer than its timeout fails, and is not run later', async () => {
  await sql`create table waited (n int)`
  const impatient = ['statements', 'plain', 'begin'].map(() =>
    openDriver(embedded, { connection: { statement_timeout: 100 } }),
  )
  const [prepared, plain, beginning] = impatient as [postgres.Sql, postgres.Sql, postgres.Sql]
  for (const driver of impatient) await driver`select 1`
  const failures = await sql.begin(async () =>
    Promise.all([
      failureOf(prepared`insert into waited values (${1})`),
      failureOf(plain`insert into waited values (2)`.simple()),
      failureOf(beginning.begin((tx) => tx`insert into waited values (3)`)),
    ]),
  )
  expect(new Set(failures)).toEqual(new Set(['canceling statement due to statement timeout']))
  // The connections go on, with the very statements that failed.
  await prepared`insert into waited values (${4})`
  await plain`insert into waited values (5)`.simple()
  await beginning.begin((tx) => tx`insert into waited values (6)`)
  expect((await sql`select n from waited order by n`).map(({ n }) => n)).toEqual([4, 5, 6])
  for (const driver of impatient) await driver.end()
})

test('leaves this thread free while the engine runs', async () => {
  let isRunning = true
  let turns = 0
  const running = sql`select pg_sleep(1)`.then(() => {
    isRunning = false
  })
  while (isRunning) {
    await new Promise((resolve) => setTimeout(resolve, 1))
    turns += 1
  }
  await running
  expect(turns).toBeGreaterThan(10)
})
