import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { readBlock } from '../documents.ts'
import { createDatabase } from '../harness.ts'
import { createFolder, createOperator } from '../program.ts'
import { postgresProgram } from '../programs.ts'
import { withPostgres } from '../services.ts'
import { urlOfDatabase } from '../templates.ts'
import { closeAfterTest } from '../use.ts'

test('the lines of docs/operating.md dump and restore a database wherever its server is', async () => {
  const { settings } = await closeAfterTest(createDatabase())
  const url = settings.DATABASE_URL as string
  const name = `restored_${randomBytes(6).toString('hex')}`
  const restored = urlOfDatabase(url, name)
  await createOperator(settings).one('orgs', 'create', '--name', 'Dumped', '--plan', 'free')
  const lines = (await readBlock('docs/operating.md', 'sh', 'pg_dump '))
    .replace('postgres://…/prompt_signals_restored', restored)
    .replaceAll('prompt_signals_restored', name)
  const env = { PATH: `${postgresProgram.find() ?? ''}:${process.env.PATH}`, DATABASE_URL: url }
  const shell = Bun.spawn(['sh', '-ec', lines], { cwd: createFolder(), env, stderr: 'inherit' })
  expect(await shell.exited).toBe(0)
  const orgs = await createOperator({ DATABASE_URL: restored }).json('orgs', 'list')
  expect(orgs.map(({ name }) => name)).toEqual(['Dumped'])
  await withPostgres(url, (sql) => sql`drop database ${sql(name)} with (force)`)
})
