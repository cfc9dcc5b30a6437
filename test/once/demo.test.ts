import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createDatabase } from '../harness.ts'
import { createFolder, createOperator, eventually, type Server, startServer } from '../program.ts'

async function startDemo(settings: Record<string, string | undefined>, lastWords: string): Promise<Server> {
  const server = await startServer(settings, ['--demo'])
  await eventually(() => server.stdout().includes(lastWords), true)
  return server
}

/** Pastes the lines into a shell, and reads what each prints. */
async function paste(script: string) {
  const shell = Bun.spawn(['bash', '-euo', 'pipefail', '-c', script], { stdout: 'pipe', stderr: 'ignore' })
  const [text, status] = await Promise.all([shell.stdout.text(), shell.exited])
  expect(status).toBe(0)
  return text.split(/(?<=\})(?=\{)/).map((answer) => JSON.parse(answer))
}

test.concurrent('the demo fills an empty embedded database once, and its curl lines work as printed', async () => {
  const settings = { DATA_DIR: join(createFolder(), 'data') }
  const operator = createOperator(settings)
  const server = await startDemo(settings, 'Documentation: ')
  const printed = server.stdout()
  const script = printed.slice(printed.indexOf('curl '), printed.indexOf('Documentation: '))
  const [history, signal] = await paste(script)
  expect(history.data.map(({ action }: { action: string }) => action)).toEqual(['pr_merged', 'pr_opened'])
  expect(history.pagination).toEqual({ current_page: 1, total_pages: 2, total_count: 3, per_page: 2 })
  expect(signal).toEqual({ data: { id: 1, value: 'positive', created_at: expect.any(String) } })
  const docs = /Documentation: (\S+)/.exec(printed)?.[1] as string
  expect((await fetch(docs)).headers.get('content-type')).toContain('text/html')
  const organisation = await operator.one('orgs', 'list')
  expect(organisation).toMatchObject({ name: 'Demo', plan: 'free', used: 1 })
  const keys = await operator.json('keys', 'list', '--org', organisation.id)
  const prompts = await operator.json('prompts', 'list', '--org', organisation.id)
  expect(await server.stop()).toBe(0)

  const again = await startDemo(settings, 'Documentation: ')
  expect(again.stdout()).not.toContain('psk_')
  expect(await operator.one('orgs', 'list')).toEqual(organisation)
  expect(await operator.json('keys', 'list', '--org', organisation.id)).toEqual(keys)
  expect(await operator.json('prompts', 'list', '--org', organisation.id)).toEqual(prompts)
  const pasted = again.stdout().slice(again.stdout().indexOf('KEY=$('), again.stdout().indexOf('Documentation: '))
  const [later, another] = await paste(pasted)
  expect(later).toEqual(history)
  expect(another.data.value).toBe('positive')
  expect(await again.stop()).toBe(0)
})

test.concurrent('the demo leaves a Postgres database alone', async () => {
  const database = await createDatabase()
  const server = await startDemo(database.settings, '--demo does nothing here')
  expect(await createOperator(database.settings).json('orgs', 'list')).toEqual([])
  expect(await server.stop()).toBe(0)
  await database.close()
})
