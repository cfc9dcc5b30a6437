import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createDatabaseWithTenant, createEmptyDatabase } from '../harness.ts'
import { createFolder, onTerminal, run } from '../program.ts'
import { entry } from '../service.ts'
import { closeAfterTest, useDatabase } from '../use.ts'

const { operator, settings, tenant } = useDatabase(createDatabaseWithTenant)

async function createPrompt(name: string): Promise<string> {
  const { id } = await operator.one('prompts', 'create', '--org', tenant.org, '--name', name)
  const stdin = JSON.stringify({ value: 'positive', created_at: '2026-01-01T00:00:00Z' })
  expect((await run(['signals', 'import', '-', '--prompt', id], { settings, stdin })).status).toBe(0)
  return id
}

test.each([
  [
    'signals purge --before 2026-02-01 --prompt Purged',
    (id: string) => `Permanently erase 1 signal older than 2026-02-01T00:00:00.000Z of ${id}? [y/N] `,
    () => 'erased  1',
  ],
  [
    'prompts erase Erased',
    (id: string) => `Permanently erase the prompt Erased (${id}) with its history and 1 signal? [y/N] `,
    (id: string) => `erased  ${id}`,
  ],
])('%s asks on a terminal, and needs --yes elsewhere', async (command, question, result) => {
  const args = command.split(' ')
  const id = await createPrompt(args.at(-1) as string)
  expect(await run(args, { settings, stdin: 'y\n' })).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('give --yes to erase without a question'),
  })
  expect(await onTerminal(args, settings, '\n', 1)).toContain(question(id))
  expect(await onTerminal(args, settings, 'no\n', 1)).toEndWith('prompt-signals: Nothing was erased.\r\n')
  expect(await onTerminal(args, settings, '\x03', 130)).toContain('prompt-signals: Interrupted.')
  expect(await onTerminal(args, settings, 'y\n')).toEndWith(`${result(id)}\r\n`)
})

test('backup, restore and import show how far they are, only on a terminal', async () => {
  const empty = await closeAfterTest(createEmptyDatabase())
  const folder = createFolder()
  const lines = join(folder, 'lines')
  const line = () => JSON.stringify(entry({ prompt: tenant.prompt }))
  await Bun.write(lines, `${line()}\n${line()}\n`)
  const imported = await onTerminal(['history', 'import', lines], settings)
  expect(imported).toContain('\r2 lines recorded, 100 %')
  expect(imported).toEndWith('\r\u001b[Krecorded 2, already known 0\r\n')
  const file = join(folder, 'backup')
  expect(await onTerminal(['backup', file], settings)).toMatch(/\r\d+ rows/)
  expect(await onTerminal(['restore', file], empty.settings)).toMatch(/\r\d+ rows, 100 %/)
})
