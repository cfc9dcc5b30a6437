// Ctrl-C: every command ends with one line, and leaves nothing half done that it would not finish when run again.
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROGRAM } from '../binary.ts'
import { createClone } from '../git/clone.ts'
import { createDatabaseWithTenant, createEmptyDatabase, engine } from '../harness.ts'
import { awaitSignalHandlers, createFolder, eventually, run, type Settings, startStopwatch } from '../program.ts'
import { entry } from '../service.ts'
import { openDb } from '../tenant.ts'
import { closeAfterTest, serveInTest, useDatabase } from '../use.ts'

/** A loaded machine may take its time to get a command going. */
const WAIT_MS = 20_000

const { operator, settings, tenant } = useDatabase(createDatabaseWithTenant)

function start(args: string[], on: Settings = settings) {
  const child = Bun.spawn([PROGRAM, ...args], {
    cwd: createFolder(),
    env: { PATH: process.env.PATH, ...on },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const ended = async () => {
    const [stdout, stderr, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
    // Said or not, by how far the command came.
    return { status, stdout, stderr: stderr.replace(/^prompt-signals: Creating a new database in .*\n/, '') }
  }
  return {
    stdin: child.stdin,
    ended,
    /** `afterMs`: time to come to where it waits for its input; whenever the signal comes, the outcome is the same. */
    async interrupt(signal: NodeJS.Signals = 'SIGINT', afterMs = 0) {
      await awaitSignalHandlers(child.pid)
      await Bun.sleep(afterMs)
      child.kill(signal)
      return ended()
    },
  }
}

const interrupted = (advice = '', status = 130) => ({
  status,
  stdout: '',
  stderr: `prompt-signals: Interrupted.${advice}\n`,
})

test('an import that waits for its input records nothing', async () => {
  const { prompt } = tenant
  const command = start(['history', 'import', '-'])
  command.stdin.write(`${JSON.stringify(entry({ prompt }))}\n`)
  await command.stdin.flush()
  expect(await command.interrupt('SIGINT', 500)).toEqual(interrupted())
  expect(await operator.json('history', 'list', '--prompt', prompt)).toEqual([])
})

test('a command whose input nobody writes to ends at once', async () => {
  const pipe = join(createFolder(), 'pipe')
  expect(Bun.spawnSync(['mkfifo', pipe]).exitCode).toBe(0)
  const command = start(['history', 'import', pipe])
  const stop = startStopwatch()
  expect(await command.interrupt('SIGINT', 500)).toEqual(interrupted())
  // Far below the ten seconds that a command has to close what it has opened.
  expect(stop()).toBeLessThan(5_000)
})

test('a restore that waits for its input restores nothing, and the database can be restored into', async () => {
  const file = join(createFolder(), 'backup')
  await operator.one('backup', file)
  const empty = await closeAfterTest(createEmptyDatabase())
  const command = start(['restore', '-'], empty.settings)
  command.stdin.write(readFileSync(file).subarray(0, 100))
  await command.stdin.flush()
  expect(await command.interrupt('SIGTERM', 500)).toEqual(interrupted('', 143))
  expect((await run(['restore', file], { settings: empty.settings })).status).toBe(0)
})

test('a backup leaves no unfinished file', async () => {
  const db = await openDb(settings, { maxConnections: 2 })
  // Enough for the backup to be interrupted while it writes.
  const rows = engine === 'postgres' ? 300_000 : 60_000
  await db.sql.script(`
    insert into organisations (public_id, name, plan, monthly_limit, created_at)
    select 'org_many_' || n, md5(n::text), 'free', 1000, now() from generate_series(1, ${rows}) n`)
  await db.close()
  const folder = createFolder()
  const command = start(['backup', join(folder, 'file')])
  await eventually(() => readdirSync(folder).length, 1, WAIT_MS)
  expect(await command.interrupt()).toEqual(interrupted())
  expect(readdirSync(folder)).toEqual([])
})

async function interruptAtRequest(argsFor: (address: string) => string[]) {
  const asked = Promise.withResolvers<void>()
  const silent = serveInTest(() => {
    asked.resolve()
    return new Promise(() => {})
  })
  const settings = { PORT: new URL(silent).port, PROMPT_SIGNALS_KEY: `psk_${'0'.repeat(36)}` }
  const command = start(argsFor(silent), settings)
  await asked.promise
  return command.interrupt()
}

test('a sync says that it goes on when it is run again', async () => {
  const clone = createClone()
  clone.commit('Begin')
  const sync = await interruptAtRequest((address) => ['sync', clone.folder, '--url', address])
  expect(sync).toEqual(interrupted(' Run it again to complete the sync.'))
})

test('a health check says nothing of a server that has not answered yet', async () => {
  // The check itself waits for three seconds, which a machine that stands still may take to deliver the signal.
  await eventually(() => interruptAtRequest(() => ['healthcheck']), interrupted(), WAIT_MS)
})

if (engine === 'postgres') {
  test('a command does not wait for a database that has not answered, and erases the rest when it is run again', async () => {
    const { id: prompt } = await operator.one('prompts', 'create', '--org', tenant.org, '--name', 'Erased')
    const stdin = JSON.stringify({ id: 1, value: 'positive', created_at: '2026-01-01T00:00:00Z' })
    expect((await run(['signals', 'import', '-', '--prompt', prompt], { settings, stdin })).status).toBe(0)
    const db = await openDb(settings, { maxConnections: 2 })
    await db.transaction(async (sql) => {
      await sql`lock table signals in exclusive mode`
      const command = start(['prompts', 'erase', prompt, '--yes'])
      const isArchived = async () => (await db.sql`select from prompts where public_id = ${prompt} and archived`).length
      await eventually(isArchived, 1, WAIT_MS)
      expect(await command.interrupt('SIGINT', 500)).toEqual(interrupted(' Run it again to erase the rest.'))
    })
    await db.close()
    expect(await operator.one('prompts', 'erase', prompt, '--yes')).toEqual({ erased: prompt })
  })

  test('a command whose connection is lost says so', async () => {
    const db = await openDb(settings, { maxConnections: 2 })
    const end = () => db.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`
    await db.transaction(async (sql) => {
      await sql`lock table organisations in exclusive mode`
      const command = start(['orgs', 'create', '--name', 'Lost', '--plan', 'free'])
      await eventually(async () => (await end()).length, 1, WAIT_MS)
      const stderr = 'prompt-signals: The connection to the database was lost.\n'
      expect(await command.ended()).toEqual({ status: 1, stdout: '', stderr })
    })
    await db.close()
  })
}
