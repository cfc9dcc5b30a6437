import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sendSignal } from '../client.ts'
import { createDatabase, createDatabaseWithTenant } from '../harness.ts'
import { createFolder, errorLineOf, eventually, run, type Server, startServer } from '../program.ts'
import { openDb } from '../tenant.ts'
import { closeAfterTest, useDatabase } from '../use.ts'

/** For the load to become one, on a machine that may be busy with other things. */
const LOAD_MS = 30_000

const { settings, tenant } = useDatabase(createDatabaseWithTenant, [beforeEach, afterEach])

/** Twenty callers that each post one signal after another, until the server is gone. */
function load({ url }: Server) {
  const answers: { status: number; id?: number }[] = []
  const caller = async () => {
    for (;;) {
      const response = await sendSignal(url, tenant).catch(() => undefined)
      const text = await response?.text().catch(() => undefined)
      if (!response || !text) return
      answers.push({ status: response.status, id: JSON.parse(text).data?.id })
    }
  }
  return { answers, ended: Promise.all(Array.from({ length: 20 }, caller)) }
}

/** Expects every acknowledged signal to be recorded, and the count to be that of the rows. */
async function expectAllKept(acknowledged: number[]): Promise<void> {
  const db = await openDb(settings)
  // In one statement: what a server that was killed has sent may be committed until then.
  const [row] = await db.sql<{ ids: number[]; used: number }>`
    select (select json_agg(id) from signals) as ids, (select sum(used)::integer from signal_usage) as used`
  await db.close()
  const ids = new Set(row?.ids)
  expect(acknowledged.filter((id) => !ids.has(id))).toEqual([])
  expect(row?.used).toBe(ids.size)
}

test('a crash under load loses no acknowledged signal, and the count stays that of the rows', async () => {
  const server = await startServer(settings)
  const { answers, ended } = load(server)
  await eventually(() => answers.length > 200, true, LOAD_MS)
  await server.kill()
  await ended
  expect([...new Set(answers.map(({ status }) => status))]).toEqual([201])
  await expectAllKept(answers.map(({ id }) => id as number))

  const again = await startServer(settings)
  const after = load(again)
  await eventually(() => after.answers.length > 20, true, LOAD_MS)
  expect(await again.stop()).toBe(0)
  await after.ended
  await expectAllKept([...answers, ...after.answers].map(({ id }) => id as number))
})

test('hostile files in the working directory change nothing', async () => {
  const folder = createFolder()
  const proof = join(folder, 'proof')
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  write('.env', `PORT=1\nHOST=192.0.2.1\nDATABASE_URL=postgres://nobody@127.0.0.1:1/none\nLOG_LEVEL=silent\n`)
  write('.env.production', 'PORT=1\n')
  write('bunfig.toml', 'preload = ["./evil.ts"]\n[run]\npreload = ["./evil.ts"]\n')
  write('evil.ts', `require('node:fs').writeFileSync(${JSON.stringify(proof)}, 'run')`)
  // By its path in the source, the binary knows the thread of the embedded engine.
  mkdirSync(join(folder, 'db'))
  write('db/embedded_worker.ts', `require('node:fs').writeFileSync(${JSON.stringify(proof)}, 'run')`)
  write('package.json', '{"type":"commonjs","imports":{"#x":"./evil.ts"}}')
  write('tsconfig.json', '{"compilerOptions":{"paths":{"*":["./evil.ts"]}}}')
  const server = await startServer(settings, [], folder)
  await eventually(async () => (await fetch(`${server.url}/readyz`)).status, 200)
  expect(new URL(server.url).hostname).toBe('127.0.0.1')
  expect((await run(['orgs', 'list', '--json'], { settings, cwd: folder })).status).toBe(0)
  expect(await server.stop()).toBe(0)
  expect(existsSync(proof)).toBe(false)
})

test.each([
  ['BUN_OPTIONS', (file: string) => `--preload ${file}`],
  ['BUN_OPTIONS', (file: string) => `--config=${file.replace('evil.js', 'bunfig.toml')}`],
  ['BUN_INSPECT', () => 'ws://127.0.0.1:0/inspector'],
])('%s, which the runtime obeys by itself, runs no other code than that of the binary', async (name, textWith) => {
  const folder = createFolder()
  const proof = join(folder, 'proof')
  writeFileSync(join(folder, 'evil.js'), `require('node:fs').writeFileSync(${JSON.stringify(proof)}, 'run')`)
  writeFileSync(join(folder, 'bunfig.toml'), `preload = [${JSON.stringify(join(folder, 'evil.js'))}]`)
  const { status, stdout } = await run(['version'], { settings: { [name]: textWith(join(folder, 'evil.js')) } })
  expect({ status, stdout, isRun: existsSync(proof) }).toEqual({ status: 1, stdout: '', isRun: false })
})

test.each([
  ['BUN_OPTIONS', '--smol'],
  ['BUN_BE_BUN', '0'],
  ['BUN_INSPECT_NOTIFY', 'tcp://127.0.0.1:1'],
  ['BUN_JSC_useJIT', '1'],
])('a command does not run with %s, and says so', async (name, value) => {
  const line = errorLineOf(await run(['version'], { settings: { [name]: value } }))
  expect(line).toBe(`Unset ${name}: the program runs only the code that it was built from`)
})

test('a port in use is reported in one line, also when another instance uses it', async () => {
  const other = await closeAfterTest(createDatabase())
  const server = await startServer(settings)
  const { port } = new URL(server.url)
  const line = errorLineOf(await run(['serve', '--port', port], { settings: other.settings }))
  expect(line).toBe(`Cannot listen on 127.0.0.1 port ${port}: the port is in use. Stop the other program, or set PORT.`)
  expect(await server.stop()).toBe(0)
})

test.each(['192.0.2.1', 'nowhere.invalid'])(
  'an address that this machine does not have is reported: %s',
  async (host) => {
    const line = errorLineOf(await run(['serve', '--host', host, '--port', '0'], { settings }))
    expect(line).toStartWith(`Cannot listen on ${host} port 0: `)
    expect(line).toEndWith('. Check the address and the port.')
  },
)
