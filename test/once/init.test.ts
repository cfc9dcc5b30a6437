import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { presets } from '../../src/lib/scopes.ts'
import { createDatabase } from '../harness.ts'
import { createFolder, createOperator, errorLineOf, eventually, run, startServer } from '../program.ts'
import { closeAfterTest } from '../use.ts'

test('an empty service says how to begin: init prints a link that signs in, and three lines that work', async () => {
  const DATA_DIR = join(createFolder(), 'data')
  const server = await startServer({ DATA_DIR })
  const hint = () => /"command":"([^"]+)","msg":"no organisation yet: run the command/.exec(server.stdout())?.[1]
  await eventually(() => hint() !== undefined, true)
  const { port } = new URL(server.url)
  expect(hint()).toStartWith(`DATA_DIR='${DATA_DIR}' PORT=${port} `)
  expect(hint()).toEndWith(' init')
  const shown = await Bun.$`sh -c ${`${hint()} --prompt first`}`.text()
  const [, address, key] = /^link +(\S+)\/#key=(\S+)$/m.exec(shown) as RegExpExecArray
  expect(address).toBe(server.url)
  expect(shown).toMatch(/ sync CLONE --org org_\w+ --create 'prompts\/\*\*\/\*\.md'$/m)
  const lines = shown.trimEnd().split('\n').slice(-3)
  const answers = await Promise.all(lines.slice(0, 2).map((line) => Bun.$`sh -c ${line}`.quiet().json()))
  expect(answers).toMatchObject([{ data: { action: 'deployed' } }, { data: { value: 'positive' } }])
  const { data } = await Bun.$`sh -c ${lines[2] as string}`.quiet().json()
  expect(data).toMatchObject([{ signals: { positive: 1, by_commit: 1 } }])
  const own = await fetch(`${address}/api/v1/key`, { headers: { authorization: `Bearer ${key}` } })
  expect(await own.json()).toMatchObject({ data: { scopes: presets.admin } })
  const again = errorLineOf(await run(['init'], { settings: { DATA_DIR, PORT: '3000' } }))
  expect(again).toMatch(/^The database already has an organisation\. For a sign-in link, run: prompt-signals console /)
  expect(await server.stop()).toBe(0)
  const restarted = await startServer({ DATA_DIR })
  expect(await restarted.stop()).toBe(0)
  expect(restarted.stdout()).not.toContain('no organisation yet')
})

test('init works on Postgres too, with the name that is given, and makes a prompt only on request', async () => {
  const database = await closeAfterTest(createDatabase())
  const operator = createOperator({ ...database.settings, PORT: '3000' })
  const refusal = 'The name is not valid. --prompt must have 1 to 200 characters, none of them a control character'
  expect(await operator.errorLine('init', '--prompt', ' ')).toBe(refusal)
  const made = await operator.one('init', '--name', 'Acme')
  expect(made).toMatchObject({ key: expect.stringMatching(/^psk_/), link: expect.stringContaining(made.key) })
  expect(await operator.json('orgs', 'list')).toMatchObject([{ id: made.org, name: 'Acme', plan: 'business' }])
  expect(await operator.json('prompts', 'list', '--org', 'Acme')).toEqual([])
})
