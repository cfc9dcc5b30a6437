import { expect, test } from 'bun:test'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createFolder, onTerminal, run } from '../program.ts'
import { useProgram } from '../use.ts'

const { client, operator, settings, tenant } = useProgram()

const folder = createFolder()

async function createPrompt(signals: number): Promise<{ prompt: string; ids: number[] }> {
  const { id: prompt } = await operator.one('prompts', 'create', '--org', tenant.org, '--name', 'Greeting')
  const { body } = await client.post(`/prompts/${prompt}/signals/batch`, tenant.key, {
    signals: Array.from({ length: signals }, (_, n) => ({ value: 'positive', metadata: { n } })),
  })
  return { prompt, ids: body.data.map(({ id }: { id: number }) => id) }
}

test('signals export writes lines to standard output, and a file that is there once it is whole', async () => {
  const { prompt, ids } = await createPrompt(3)
  const lines = (await operator.plain('signals', 'export', '--prompt', prompt)).split('\n')
  expect(lines.slice(0, -1).map((line) => JSON.parse(line).id)).toEqual(ids)
  const inCsv = ['signals', 'export', '--prompt', prompt, '--format', 'csv']
  const rest = await operator.plain(...inCsv, '--after', String(ids[1]))
  expect(rest).toMatch(new RegExp(`^${ids[2]},${prompt},positive,[^,]+,"{""n"": 2}"\r\n$`))
  const file = join(folder, 'signals.csv')
  expect(await operator.one(...inCsv, '--output', file)).toEqual({ file, signals: 3 })
  expect((await Bun.file(file).text()).split('\r\n')).toHaveLength(5)
  expect(await readdir(folder)).toEqual(['signals.csv'])
})

test('signals export of an organisation has all its prompts', async () => {
  const { ids } = await createPrompt(2)
  const lines = (await operator.plain('signals', 'export', '--org', tenant.org)).split('\n').slice(0, -1)
  expect(lines.map((line) => JSON.parse(line).id)).toEqual(expect.arrayContaining(ids))
})

const later = new Date(Date.now() + 60_000).toISOString()
const purge = ['signals', 'purge', '--before', later]

test('signals purge erases what is older, of a prompt or an organisation, and says how many', async () => {
  const { prompt } = await createPrompt(4)
  const earlier = ['signals', 'purge', '--before', '2020-01-01', '--prompt', prompt, '--yes']
  expect(await operator.one(...earlier)).toEqual({ erased: 0 })
  expect(await operator.one(...purge, '--prompt', prompt, '--dry-run')).toEqual({ would_erase: 4 })
  expect(await operator.one(...purge, '--prompt', prompt, '--yes')).toEqual({ erased: 4 })
  expect(await operator.plain('signals', 'export', '--prompt', prompt)).toBe('')
  await createPrompt(2)
  const { would_erase } = await operator.one(...purge, '--org', tenant.org, '--dry-run')
  expect(would_erase).toBeGreaterThanOrEqual(2)
  expect(await operator.one(...purge, '--org', tenant.org, '--yes')).toEqual({ erased: would_erase })
  expect(await operator.plain('signals', 'export', '--org', tenant.org)).toBe('')
  expect(await operator.one(...purge, '--all-orgs', '--yes')).toEqual({ erased: 0 })
})

test('signals purge asks on a terminal, and needs --yes elsewhere', async () => {
  const { prompt } = await createPrompt(1)
  const args = [...purge, '--prompt', prompt]
  const question = `Permanently erase 1 signal older than ${later} of ${prompt}? [y/N] `
  expect(await onTerminal(args, settings, '\n', 1)).toContain(question)
  expect(await onTerminal(args, settings, 'no\n', 1)).toEndWith('prompt-signals: Nothing was erased.\r\n')
  const refused = await run(args, { settings, stdin: 'y\n' })
  expect(refused).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('give --yes to erase without a question'),
  })
  expect(await operator.one(...args, '--dry-run')).toEqual({ would_erase: 1 })
  expect(await onTerminal(args, settings, 'y\n')).toEndWith('erased  1\r\n')
})

test('prompts erase asks on a terminal, needs --yes elsewhere, and may name the prompt', async () => {
  const { id } = await operator.one('prompts', 'create', '--org', tenant.org, '--name', 'Farewell')
  await client.post(`/prompts/${id}/signals`, tenant.key, { value: 'positive' })
  const args = ['prompts', 'erase', 'Farewell']
  expect(await run(args, { settings, stdin: 'y\n' })).toMatchObject({
    ...{ status: 2, stderr: expect.stringContaining('give --yes to erase without a question\n') },
  })
  const question = `Permanently erase the prompt Farewell (${id}) with its history and 1 signal? [y/N] `
  expect(await onTerminal(args, settings, 'n\n', 1)).toContain(question)
  expect((await client.get(`/prompts/${id}`, tenant.key)).status).toBe(200)
  expect(await onTerminal(args, settings, 'y\n')).toEndWith(`erased  ${id}\r\n`)
  expect(await operator.errorLine(...args, '--yes')).toBe(
    'There is no prompt Farewell. "prompt-signals prompts list --org ORG" lists them.',
  )
})

test('orgs set-retention is shown by orgs list, and ended by none', async () => {
  const setTo = (days: string) => operator.one('orgs', 'set-retention', tenant.org, days)
  expect(await setTo('400')).toMatchObject({ id: tenant.org, retention_days: 400 })
  expect(await setTo('none')).toMatchObject({ id: tenant.org, retention_days: null })
})
