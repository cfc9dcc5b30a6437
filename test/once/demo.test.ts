import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createDemoPrompts } from '../../src/cli/demo.ts'
import { presets } from '../../src/lib/scopes.ts'
import { createOrganisation, readOrganisation, requireOrganisation } from '../../src/orgs/manage.ts'
import { createDatabase } from '../harness.ts'
import { createFolder, createOperator, eventually, type Operator, type Row, run, startServer } from '../program.ts'
import { openDb } from '../tenant.ts'
import { closeAfterTest } from '../use.ts'

const verdicts = {
  greeting: ['better', 'worse', 'undecided', null],
  farewell: ['worse', null],
  summary: ['undecided', null],
  refund: [null],
}

async function startDemo(settings: Record<string, string | undefined>, lastWords: string) {
  const server = await startServer(settings, ['--demo'])
  await eventually(() => server.stdout().includes(lastWords), true, 60_000)
  return server
}

async function paste(script: string) {
  const shell = Bun.spawn(['bash', '-euo', 'pipefail', '-c', script], { stdout: 'pipe', stderr: 'ignore' })
  const [text, status] = await Promise.all([shell.stdout.text(), shell.exited])
  expect(status).toBe(0)
  return text.split(/(?<=\})(?=\{)/).map((answer) => JSON.parse(answer))
}

/** What each change of each prompt did, newest first, as the command says. */
async function verdictsOf(operator: Operator, prompts: Row[]) {
  const verdicts = prompts.map(async ({ id, name }) => {
    const impacts = await operator.json('impact', '--prompt', String(id))
    return [name, impacts.map(({ verdict }) => verdict)]
  })
  return Object.fromEntries(await Promise.all(verdicts))
}

test.concurrent('the demo fills an empty embedded database once, and its curl lines work as printed', async () => {
  const settings = { DATA_DIR: join(createFolder(), 'data') }
  const operator = createOperator(settings)
  const server = await startDemo(settings, 'Documentation: ')
  const printed = server.stdout()
  const script = printed.slice(printed.indexOf('export '), printed.indexOf('Documentation: '))
  const [impact, history, signal] = await paste(script)
  expect(impact.data).toMatchObject([{ change: { pr_number: 7 }, verdict: 'better', window: { until: null } }])
  expect(impact.pagination).toEqual({ current_page: 1, total_pages: 4, total_count: 4, per_page: 1 })
  expect(history.data.map(({ action }: { action: string }) => action)).toEqual(['pr_merged', 'pr_opened'])
  expect(history.pagination).toEqual({ current_page: 1, total_pages: 3, total_count: 6, per_page: 2 })
  expect(signal).toEqual({ data: { id: expect.any(Number), value: 'positive', created_at: expect.any(String) } })
  const link = /See it: (\S+)#key=(psk_\w{36})\n/.exec(printed) as RegExpExecArray
  expect((await fetch(link[1] as string)).headers.get('content-security-policy')).toContain('trusted-types')
  const own = await fetch(`${link[1]}api/v1/key`, { headers: { authorization: `Bearer ${link[2]}` } })
  expect(await own.json()).toMatchObject({ data: { organisation: { name: 'Demo' }, scopes: presets.admin } })
  const docs = /Documentation: (\S+)/.exec(printed)?.[1] as string
  expect((await fetch(docs)).headers.get('content-type')).toContain('text/html')
  const organisation = await operator.one('orgs', 'list')
  expect(organisation).toMatchObject({ name: 'Demo', plan: 'team', used: expect.any(Number) })
  // When it was last used is written a little later, or with the stop.
  const listKeys = async () =>
    (await operator.json('keys', 'list', '--org', organisation.id)).map(({ last_used_at: _, ...key }) => key)
  const keys = await listKeys()
  const prompts = await operator.json('prompts', 'list', '--org', organisation.id)
  expect(await verdictsOf(operator, prompts)).toEqual(verdicts)
  expect(await server.stop()).toBe(0)

  const again = await startDemo(settings, 'Documentation: ')
  expect(again.stdout()).not.toContain('psk_')
  expect(await operator.one('orgs', 'list')).toEqual(organisation)
  expect(await listKeys()).toEqual(keys)
  expect(await operator.json('prompts', 'list', '--org', organisation.id)).toEqual(prompts)
  const [, command = ''] = /Print a sign-in link:\n\n(.*)\n/.exec(again.stdout()) ?? []
  const shown = await Bun.$`sh -c ${`${command} --json`}`.json()
  expect(shown.link).toStartWith(`${again.url}/#key=psk_`)
  const pasted = again.stdout().slice(again.stdout().indexOf('export '), again.stdout().indexOf('Documentation: '))
  const [, later, another] = await paste(pasted)
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

test.each(['2026-03-01T00:00:00.500Z', '2026-05-31T23:59:59.000Z', '2026-11-15T12:00:00.000Z'])(
  'started at %s, the demo tells the story of docs/signals.md and fits its plan',
  async (now) => {
    const { settings } = await closeAfterTest(createDatabase())
    const clock = { now: () => new Date(now) }
    const db = await openDb(settings)
    const { id: org } = await createOrganisation(db, clock, { name: 'Demo', plan: 'team', monthlyLimit: null })
    const owner = await requireOrganisation(db, org)
    const [greeting] = (await createDemoPrompts(db, clock, owner)) as [string]
    const { used, monthly_limit } = await readOrganisation(db, clock, 1)
    expect(used).toBeLessThan(0.8 * monthly_limit)
    await db.close()

    const operator = createOperator(settings)
    const documented = await Bun.file(join(import.meta.dir, '../../docs/signals.md')).text()
    for (const more of [[], ['--base', '3', '--head', '6', '--margin', '0.08']]) {
      const [sentence, wander] = (await operator.plain('impact', '--prompt', greeting, ...more)).split('\n')
      expect(documented).toContain(`\n${sentence}\n${wander}\n`)
    }
    const guide = await Bun.file(join(import.meta.dir, '../../docs/experiments.md')).text()
    const [command = ''] = /^ *prompt-signals compare .*$/m.exec(guide) ?? []
    // The guide sends one signal before it compares.
    const [, body = ''] = /-d '(\{.*\})'/.exec(guide) ?? []
    const stdin = JSON.stringify({ ...JSON.parse(body), created_at: now })
    expect((await run(['signals', 'import', '-', '--prompt', 'pmt_refund'], { settings, stdin })).status).toBe(0)
    const [sides] = (await operator.plain(...command.trim().split(' ').slice(1))).split('\n')
    expect(guide).toContain(`   ${sides}\n`)
    expect(await verdictsOf(operator, await operator.json('prompts', 'list', '--org', org))).toEqual(verdicts)
  },
)
