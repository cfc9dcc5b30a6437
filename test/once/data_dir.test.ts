import { expect, test } from 'bun:test'
import { chownSync, existsSync, lchownSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig } from '../../src/config.ts'
import { lockDataDir } from '../../src/db/data_dir.ts'
import { openAny } from '../../src/db/open.ts'
import { PROGRAM } from '../binary.ts'
import { createDataDir } from '../harness.ts'
import { createFolder, createOperator, errorLineOf, eventually, readJsonLines, run, startServer } from '../program.ts'

const nobody = 65_534

const fresh = () => join(createFolder(), 'data')

test('five concurrent commands on an empty data directory all succeed, and one of them makes the schema', async () => {
  const settings = { DATA_DIR: fresh() }
  const finished = await Promise.all(Array.from({ length: 5 }, () => run(['migrate', '--json'], { settings })))
  expect(finished.map(({ status }) => status)).toEqual(Array(5).fill(0))
  const created = `prompt-signals: Creating a new database in ${settings.DATA_DIR}.\n`
  expect(finished.map(({ stderr }) => stderr).sort()).toEqual(['', '', '', '', created])
  const results = finished.flatMap(({ stdout }) => readJsonLines(stdout))
  expect(results.filter(({ applied }) => applied.length > 0)).toHaveLength(1)
  expect(new Set(results.map(({ version }) => version)).size).toBe(1)
})

test.concurrent('a second server is rejected with a clear line, and the first goes on', async () => {
  const settings = { DATA_DIR: await createDataDir() }
  const server = await startServer(settings)
  const line = errorLineOf(await run(['serve'], { settings }))
  expect(line).toBe(
    `The data directory ${settings.DATA_DIR} is in use by another prompt-signals. Stop it, or set DATA_DIR.`,
  )
  await eventually(async () => (await fetch(`${server.url}/readyz`)).status, 200)
  expect(await createOperator(settings).json('orgs', 'list')).toEqual([])
  expect(await server.stop()).toBe(0)
})

test.concurrent('a command waits for the process that holds the directory and does not share it yet', async () => {
  const settings = { DATA_DIR: fresh() }
  const holder = lockDataDir(settings.DATA_DIR)
  // Longer than a server would wait, even if the command takes its time to begin.
  setTimeout(() => holder?.release(), 9_000)
  const made = await createOperator(settings).one('orgs', 'create', '--name', 'Patient', '--plan', 'free')
  expect(made).toMatchObject({ name: 'Patient' })
})

test.concurrent('a slip in the name of the data directory makes no database', async () => {
  const settings = { DATA_DIR: fresh() }
  for (const command of ['orgs list', 'keys list --org org_x', 'prompts list --org org_x', 'backup -']) {
    const line = errorLineOf(await run(command.split(' '), { settings }))
    expect(line).toBe(
      `There is no database in ${settings.DATA_DIR}. Set DATA_DIR or DATABASE_URL, or begin with "prompt-signals init".`,
    )
  }
  expect(existsSync(settings.DATA_DIR)).toBe(false)
  // Root may enter every directory, so a link to itself stands for one that cannot be entered.
  symlinkSync(settings.DATA_DIR, settings.DATA_DIR)
  const line = errorLineOf(await run(['orgs', 'list'], { settings }))
  expect(line).toStartWith(`The data directory ${settings.DATA_DIR} cannot be used: `)
})

test.concurrent('serve says when there is no database, and with REQUIRE_DATABASE makes none', async () => {
  const settings = { DATA_DIR: fresh() }
  const requiring = { ...settings, REQUIRE_DATABASE: 'on' }
  expect(errorLineOf(await run(['serve'], { settings: requiring }))).toStartWith('There is no database in ')
  expect(existsSync(settings.DATA_DIR)).toBe(false)
  const first = await startServer(settings)
  expect(await first.stop()).toBe(0)
  expect(first.stderr()).toBe(
    `prompt-signals: There is no database in ${settings.DATA_DIR}: creating an empty one. If your data should be there, stop, and check DATA_DIR and its volume.\n`,
  )
  const second = await startServer(requiring)
  expect([await second.stop(), second.stderr()]).toEqual([0, ''])
})

test.concurrent('root is told to run as the owner of a data directory, and nothing is opened or created', async () => {
  expect(process.getuid?.()).toBe(0)
  const folder = createFolder()
  const [owned, output] = [join(folder, 'owned'), join(folder, 'output')]
  mkdirSync(owned)
  chownSync(owned, nobody, nobody)
  // The owner may have put a link to a directory of root's there.
  const [target, planted] = [join(folder, 'target'), join(folder, 'planted')]
  mkdirSync(target)
  symlinkSync(target, planted)
  lchownSync(planted, nobody, nobody)
  for (const DATA_DIR of [owned, planted]) {
    for (const command of ['serve', 'migrate', 'orgs list', `signals export --org o --output ${output}`]) {
      expect(errorLineOf(await run(command.split(' '), { settings: { DATA_DIR } }))).toBe(
        `The data directory ${DATA_DIR} belongs to user ${nobody}: run the command as that user, sudo -u '#${nobody}' …`,
      )
    }
    expect(readdirSync(DATA_DIR)).toEqual([])
  }
  expect(existsSync(output)).toBe(false)
})

test.concurrent('the copy of an interrupted or a killed backup does not stay', async () => {
  const settings = { DATA_DIR: await createDataDir() }
  const operator = createOperator(settings)
  await operator.one('orgs', 'create', '--name', 'Copied', '--plan', 'free')
  const server = await startServer(settings)
  const copy = join(settings.DATA_DIR, 'backup', 'copy')
  const end = async (signal: NodeJS.Signals) => {
    // The copy exists while the engine starts on it and is read, which is far longer than the signal takes.
    const child = Bun.spawn([PROGRAM, 'backup', '-'], { env: { ...settings }, stdout: 'pipe', stderr: 'ignore' })
    await eventually(() => existsSync(copy), true, 30_000)
    child.kill(signal)
    await child.exited
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    await end(signal)
    expect(existsSync(copy)).toBe(false)
  }
  await end('SIGKILL')
  expect(await server.stop()).toBe(0)
  expect(existsSync(copy)).toBe(true)
  expect(await (await startServer(settings)).stop()).toBe(0)
  expect(existsSync(copy)).toBe(false)
})

test.concurrent('a command that works through another process can finish while that process stops', async () => {
  const config = readConfig({}, { DATA_DIR: fresh() })
  const options = { queryTimeoutMs: 0, maxConnections: 1, whenInUse: 'share' as const }
  const holder = await openAny(config, options)
  const guest = await openAny(config, options)
  const left = holder.close()
  expect(await guest.transaction((sql) => sql`select 1 as n`)).toEqual([{ n: 1 }])
  expect(await guest.sql`select 2 as n`).toEqual([{ n: 2 }])
  await guest.close()
  await left
})

test.concurrent('a stop in the middle of the start exits with 0', async () => {
  const settings = { DATA_DIR: fresh() }
  const server = await startServer(settings, ['--demo'])
  expect(await server.stop()).toBe(0)
  expect(await createOperator(settings).one('orgs', 'list')).toMatchObject({ name: 'Demo' })
})

test.concurrent('only its owner can get at the data, by its files or by its socket', async () => {
  const settings = { DATA_DIR: fresh() }
  const server = await startServer(settings)
  const mode = (name: string) => statSync(join(settings.DATA_DIR, name)).mode & 0o777
  expect([mode('.'), mode('control.sock')]).toEqual([0o700, 0o600])
  expect(await server.stop()).toBe(0)
  expect(existsSync(join(settings.DATA_DIR, 'control.sock'))).toBe(false)
})

test.concurrent('a data directory that a crash has left is taken over, by a command or a server', async () => {
  const settings = { DATA_DIR: await createDataDir() }
  const operator = createOperator(settings)
  const first = await startServer(settings)
  const { id } = await operator.one('orgs', 'create', '--name', 'Kept', '--plan', 'free')
  await first.kill()
  expect((await operator.one('orgs', 'list')).id).toBe(id)
  const second = await startServer(settings)
  await second.kill()
  const third = await startServer(settings)
  expect((await operator.one('orgs', 'list')).id).toBe(id)
  expect(await third.stop()).toBe(0)
})

test.concurrent.each([['serve'], ['orgs create --name N --plan free'], ['migrate']])(
  '%s rejects a data directory that cannot be one',
  async (command) => {
    const file = join(createFolder(), 'file')
    await Bun.write(file, 'not a folder')
    for (const DATA_DIR of [file, '/proc/none', join(file, 'below')]) {
      const line = errorLineOf(await run(command.split(' '), { settings: { DATA_DIR } }))
      expect(line).toStartWith(`The data directory ${DATA_DIR} cannot be used: `)
    }
    const long = join(createFolder(), 'x'.repeat(120))
    const line = errorLineOf(await run(command.split(' '), { settings: { DATA_DIR: long } }))
    expect(line).toStartWith('DATA_DIR is too long a path: ')
    expect(existsSync(long)).toBe(false)
  },
)
