// What 1.0 wrote, every later release reads. `bun scripts/freeze.ts` writes the files again, until 1.0 is released.
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { readBackup, writeFile } from '../../src/backup/file.ts'
import { restoreBackup } from '../../src/backup/restore.ts'
import { listTables } from '../../src/backup/store.ts'
import { writeBackup } from '../../src/backup/write.ts'
import { readConfig } from '../../src/config.ts'
import { filesOf } from '../../src/db/data_dir.ts'
import { openAny } from '../../src/db/open.ts'
import { openInput } from '../../src/lib/input.ts'
import { migrations } from '../../src/platform.ts'
import { createDatabase, createEmptyDatabase } from '../harness.ts'
import { createFolder, createOperator, eventually, type Settings } from '../program.ts'
import { postgresProgram } from '../programs.ts'
import { entry, startService } from '../service.ts'
import { closeAfterTest } from '../use.ts'
import { useReceiver } from '../webhooks/receiver.ts'
import { type Answers, readAnswers } from './answers.ts'
import { shapeOf } from './breaks.ts'
import { type Everything, frozenAt, useEverything } from './everything.ts'
import { isFreezing } from './freezing.ts'

type Frozen = Everything & { answers: Answers }

const release = join(import.meta.dir, '1.0')
const file = (name: string) => join(release, name)
const names = {
  events: 'events.json',
  commands: 'commands.json',
  backup: 'backup',
  dump: 'dump.sql.gz',
  folder: 'data.tar.zst',
  answers: 'answers.json.gz',
}

const eventTypes = ['change.live', 'impact.decided', 'ping', 'rate.changed', 'usage.threshold']

/** Those whose answers do not depend on the day. */
const commands = [
  ...['orgs list', 'keys list --org Acme', 'endpoints list --org Acme', 'audit list --org Acme'],
  ...['prompts list --org Acme', 'history list --prompt pmt_farewell', 'signals list --prompt pmt_greeting'],
  ...['migrate --dry-run', 'migrate', 'version', 'config'],
]

const receiver = useReceiver()

test('what is kept for later releases uses every feature: no table is empty, every event was sent', async () => {
  const { settings } = await closeAfterTest(createDatabase())
  const service = await closeAfterTest(startService({ settings, limits: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' } }))
  const made = await useEverything(service, receiver.url)
  const { db, clock } = service.services
  const tables = await listTables(db.sql)
  const filled = await Promise.all(
    tables.map(async ({ name }) => ((await db.sql.dynamic(`select from ${name} limit 1`)).length > 0 ? [] : name)),
  )
  expect(filled.flat()).toEqual([])
  const pending = () => db.sql`select from webhook_deliveries where status = 'pending'`
  await eventually(async () => (await pending()).length, 0)
  const sent = receiver.received.map(({ body }) => JSON.parse(body)).filter(({ type }) => type)
  // Of several of one type, always the same.
  const shapes = sent
    .map((event) => [event.type, shapeOf(event)])
    .sort((a, b) => (`${JSON.stringify(a)}` < `${JSON.stringify(b)}` ? -1 : 1))
  const events = Object.fromEntries(shapes)
  expect(Object.keys(events).sort()).toEqual(eventTypes)
  if (!isFreezing) expect(events).toMatchObject(JSON.parse(readFileSync(file(names.events), 'utf8')))
  if (!isFreezing) return

  mkdirSync(release, { recursive: true })
  writeFileSync(file(names.events), `${JSON.stringify(events, null, 2)}\n`)
  const answers = await readAnswers(service, made.key, [made.prompts.greeting, made.prompts.farewell])
  writeFileSync(file(names.answers), gzipSync(JSON.stringify({ ...made, answers })))
  await writeFile(file(names.backup), (write) => writeBackup(db, clock, '1.0.0', write))
  writeFileSync(file(names.commands), `${JSON.stringify(await readCommands(settings), null, 2)}\n`)
  await freezeDump(settings)
  await freezeFolder()
})

/** The shape of what each command prints with --json. */
async function readCommands(settings: Settings): Promise<Record<string, unknown>> {
  const operator = createOperator(settings)
  const shapes: Record<string, unknown> = {}
  for (const command of commands) shapes[command] = shapeOf(await operator.json(...command.split(' ')))
  return shapes
}

async function freezeDump(settings: Settings): Promise<void> {
  const dump = await postgres('pg_dump', '--no-owner', '--no-privileges', settings.DATABASE_URL as string)
  // Older programs do not know this command.
  writeFileSync(file(names.dump), gzipSync(dump.replace(/^\\(un)?restrict .*\n/gm, ''), { level: 9 }))
}

async function freezeFolder(): Promise<void> {
  const settings = { DATA_DIR: join(createFolder(), 'data') }
  await restore(settings)
  const db = await open(settings)
  await db.sql`update webhook_endpoints set disabled_at = null, disabled_reason = null where disabled_reason = 'restored'`
  await db.close()
  const folder = filesOf(settings.DATA_DIR)
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const paths = entries.map(
    (one) => join(one.parentPath, one.name).slice(folder.length + 1) + (one.isDirectory() ? '/' : ''),
  )
  const content = (path: string) => (path.endsWith('/') ? new Uint8Array() : readFileSync(join(folder, path)))
  const archive = await new Bun.Archive(Object.fromEntries(paths.map((path) => [path, content(path)]))).bytes()
  writeFileSync(file(names.folder), Bun.zstdCompressSync(archive, { level: 22 }))
}

const open = (settings: Settings) =>
  openAny(readConfig({}, settings), { queryTimeoutMs: 0, maxConnections: 1, whenInUse: 'fail' })

async function restore(settings: Settings): Promise<void> {
  const db = await open(settings)
  await restoreBackup(db, migrations, readBackup('', await openInput(file(names.backup)))).finally(db.close)
}

async function postgres(program: string, ...args: string[]): Promise<string> {
  const child = Bun.spawn([join(postgresProgram.find() as string, program), ...args], { stderr: 'inherit' })
  const text = await new Response(child.stdout).text()
  expect(await child.exited).toBe(0)
  return text
}

const emptyPostgres = async () => (await closeAfterTest(createEmptyDatabase())).settings

/** How each becomes a database. */
const openings: Record<string, () => Promise<Settings>> = {
  async backup() {
    const settings = await emptyPostgres()
    await restore(settings)
    return settings
  },
  async dump() {
    const settings = await emptyPostgres()
    const script = join(createFolder(), 'dump.sql')
    writeFileSync(script, gunzipSync(readFileSync(file(names.dump))))
    await postgres('psql', '--quiet', '--set=ON_ERROR_STOP=1', `--file=${script}`, settings.DATABASE_URL as string)
    await createOperator(settings).one('migrate')
    return settings
  },
  async folder() {
    const DATA_DIR = join(createFolder(), 'data')
    mkdirSync(filesOf(DATA_DIR), { recursive: true, mode: 0o700 })
    await new Bun.Archive(Bun.zstdDecompressSync(readFileSync(file(names.folder)))).extract(filesOf(DATA_DIR))
    return { DATA_DIR }
  },
}

test.each(Object.keys(openings))(
  'the %s of 1.0 is opened, answers as it did, and goes on (until its release: bun scripts/freeze.ts)',
  async (name) => {
    const { answers, key, prompts } = JSON.parse(gunzipSync(readFileSync(file(names.answers))).toString()) as Frozen
    const settings = (await openings[name]?.()) as Settings
    if (name === 'dump') {
      expect(await readCommands(settings)).toMatchObject(JSON.parse(readFileSync(file(names.commands), 'utf8')))
    }
    const today = await startService({ settings })
    today.clock.set(frozenAt)
    const paths = Object.keys(answers)
    // A restored database sends nothing.
    const isRestored = name === 'backup'
    if (isRestored)
      await today.services.db
        .sql`update webhook_endpoints set disabled_at = null, disabled_reason = null where disabled_reason = 'restored'`
    const now = await readAnswers(today, key, [prompts.greeting, prompts.farewell])
    for (const path of paths) expect([path, now[path]]).toMatchObject([path, answers[path]] as unknown[])

    const post = (idempotencyKey: string) =>
      today.post(
        `/prompts/${prompts.greeting}/signals`,
        key,
        { value: 'negative', metadata: { session: 'a81c', big: 9_007_199_254_740_991 } },
        { 'idempotency-key': idempotencyKey },
      )
    const repeated = await post('twice')
    expect([repeated.status, repeated.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
    const fresh = await post('fresh')
    expect(fresh.body.data.id).toBeGreaterThan(repeated.body.data.id)
    expect((await today.post(`/prompts/${prompts.long}/history`, key, entry())).status).toBe(201)
    const used = (await today.get('/usage', key)).body.data.used
    expect(used).toBe((answers['/api/v1/usage'] as { data: { used: number } }).data.used + 1)
    await today.close()

    const [backup, target] = [join(createFolder(), 'backup'), { DATA_DIR: join(createFolder(), 'data') }]
    const { rows } = await createOperator(settings).one('backup', backup)
    expect(await createOperator(target).one('restore', backup)).toMatchObject({ rows })
  },
)
