// Ctrl-C: every command ends with one line that says what was and was not done, and leaves nothing half done.
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Sql } from '../../src/db/client.ts'
import { PROGRAM } from '../binary.ts'
import { createClone } from '../git/clone.ts'
import { createDatabaseWithTenant, createEmptyDatabase, engine } from '../harness.ts'
import {
  awaitSignalHandlers,
  createFolder,
  eventually,
  onTerminal,
  run,
  type Settings,
  startStopwatch,
} from '../program.ts'
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
    return { status, stdout, stderr: stderr.replace(/^prompt-signals: Created a new database in .*\n/, '') }
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

const interrupted = (line: string, status = 130) => ({ status, stdout: '', stderr: `prompt-signals: ${line}\n` })

test('an import that waits for its input records nothing', async () => {
  const { prompt } = tenant
  const command = start(['history', 'import', '-'])
  command.stdin.write(`${JSON.stringify(entry({ prompt }))}\n`)
  await command.stdin.flush()
  expect(await command.interrupt('SIGINT', 500)).toEqual(interrupted('Interrupted: nothing was recorded.'))
  expect(await operator.json('history', 'list', '--prompt', prompt)).toEqual([])
})

test('a command whose input nobody writes to ends at once', async () => {
  const pipe = join(createFolder(), 'pipe')
  expect(Bun.spawnSync(['mkfifo', pipe]).exitCode).toBe(0)
  const command = start(['history', 'import', pipe])
  const stop = startStopwatch()
  expect(await command.interrupt('SIGINT', 500)).toEqual(interrupted('Interrupted: nothing was recorded.'))
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
  expect(await command.interrupt('SIGTERM', 500)).toEqual(interrupted('Interrupted: nothing was restored.', 143))
  expect((await run(['restore', file], { settings: empty.settings })).status).toBe(0)
})

test('a backup leaves no unfinished file', async () => {
  const db = await openDb(settings, { maxConnections: 2 })
  // Enough for the backup to be interrupted while it writes.
  const rows = engine === 'postgres' ? 300_000 : 60_000
  await db.sql.script(`
    insert into organisations (public_id, name, plan, created_at)
    select 'org_many_' || n, md5(n::text), 'free', now() from generate_series(1, ${rows}) n`)
  await db.close()
  const folder = createFolder()
  const command = start(['backup', join(folder, 'file')])
  await eventually(() => readdirSync(folder).length, 1, WAIT_MS)
  expect(await command.interrupt()).toEqual(interrupted('Interrupted: no complete backup was written.'))
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

test('a sync says that what was recorded stays, and a dry run, which records nothing, that nothing was changed', async () => {
  const clone = createClone()
  clone.commit('Begin')
  const sync = (...more: string[]) => interruptAtRequest((address) => ['sync', clone.folder, '--url', address, ...more])
  expect(await sync()).toEqual(
    interrupted('Interrupted: the entries recorded so far stay; run it again to complete the sync.'),
  )
  expect(await sync('--dry-run')).toEqual(interrupted('Interrupted: nothing was changed.'))
})

test('a health check says nothing of a server that has not answered yet', async () => {
  // The check itself waits for three seconds, which a machine that stands still may take to deliver the signal.
  const check = () => interruptAtRequest(() => ['healthcheck'])
  await eventually(check, interrupted('Interrupted: nothing was changed.'), WAIT_MS)
})

test('what asks before it erases has changed nothing', async () => {
  for (const command of ['prompts erase', 'signals purge --before 2026-01-01 --prompt']) {
    const shown = await onTerminal([...command.split(' '), tenant.prompt], settings, '\x03', 130)
    expect(shown).toContain('Interrupted: nothing was changed.')
  }
})

if (engine === 'postgres') {
  test('a prompt is partly erased, though the database has not answered to the last step', async () => {
    const { id: prompt } = await operator.one('prompts', 'create', '--org', tenant.org, '--name', 'Erased')
    const stdin = JSON.stringify({ id: 1, value: 'positive', created_at: '2026-01-01T00:00:00Z' })
    expect((await run(['signals', 'import', '-', '--prompt', prompt], { settings, stdin })).status).toBe(0)
    const db = await openDb(settings, { maxConnections: 2 })
    await db.transaction(async (sql) => {
      await sql`lock table signals in exclusive mode`
      const command = start(['prompts', 'erase', prompt, '--yes'])
      const isArchived = async () => (await db.sql`select from prompts where public_id = ${prompt} and archived`).length
      await eventually(isArchived, 1, WAIT_MS)
      expect(await command.interrupt('SIGINT', 500)).toEqual(
        interrupted('Interrupted: the prompt is archived and partly erased; run it again to erase the rest.'),
      )
    })
    await db.close()
    expect(await operator.one('prompts', 'erase', prompt, '--yes')).toEqual({ erased: prompt })
  })

  test('a change without an answer of the database, or without its connection, is uncertain; a query changes nothing', async () => {
    const db = await openDb(settings, { maxConnections: 2 })
    const countBlocked = async () =>
      (
        await db.sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      ).length
    /** Runs a command on organisations that are locked, until `end` has ended it. */
    const runLocked = (
      mode: string,
      args: string[],
      end: (command: ReturnType<typeof start>, sql: Sql) => Promise<object>,
    ) =>
      db.transaction(async (sql) => {
        await sql.dynamic(`lock table organisations in ${mode} mode`)
        const command = start(args)
        await eventually(countBlocked, 1, WAIT_MS)
        return end(command, sql)
      })
    const create = (name: string) => ['orgs', 'create', '--name', name, '--plan', 'free']
    const uncertain = 'the change may or may not have been made. To check, run: prompt-signals orgs list'
    try {
      expect(await runLocked('exclusive', create('Held'), ({ interrupt }) => interrupt())).toEqual(
        interrupted(`Interrupted before the database had answered: ${uncertain}`),
      )
      await eventually(countBlocked, 0, WAIT_MS)
      const lost = await runLocked('exclusive', create('Lost'), async ({ ended }, sql) => {
        await sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'`
        return ended()
      })
      expect(lost).toEqual(
        interrupted(`The connection to the database was lost before the database had answered: ${uncertain}`, 1),
      )
      expect(await runLocked('access exclusive', ['orgs', 'list'], ({ interrupt }) => interrupt())).toEqual(
        interrupted('Interrupted: nothing was changed.'),
      )
    } finally {
      await db.close()
    }
  })
}
