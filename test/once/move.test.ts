import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { createEmptyDatabase } from '../harness.ts'
import { createFolder, createOperator, createTenant, PROGRAM, type Settings } from '../program.ts'
import { closeAfterTest } from '../use.ts'

/** Line by line, but for the first, which says when it was made. */
async function contentOf(settings: Settings): Promise<string[]> {
  const file = join(createFolder(), 'backup')
  await createOperator(settings).one('backup', file)
  return gunzipSync(readFileSync(file)).toString().split('\n').slice(1)
}

const format = (settings: Settings) => Object.entries(settings)[0]?.join('=')

/** What an operator types to move: one line of shell. Resolves with what it says beside the result. */
async function move(from: Settings, to: Settings): Promise<string> {
  const shell = Bun.spawn(
    ['bash', '-c', 'set -o pipefail; env "$FROM" "$PROGRAM" backup - | env "$TO" "$PROGRAM" restore -'],
    {
      env: { PATH: process.env.PATH, PROGRAM, FROM: format(from), TO: format(to) },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  expect(await shell.exited).toBe(0)
  return shell.stderr.text()
}

test('one line moves everything to Postgres, and one back, with every row and number the same', async () => {
  const [first, last] = [{ DATA_DIR: join(createFolder(), 'data') }, { DATA_DIR: join(createFolder(), 'data') }]
  const postgres = await closeAfterTest(createEmptyDatabase())
  const operator = createOperator(first)
  const { prompt, keyId } = await createTenant(first, 7)
  await operator.one('keys', 'revoke', keyId)
  await operator.one(
    ...['history', 'record', '--prompt', prompt, '--action', 'deployed', '--commit-sha', 'c0ffee12'],
    ...['--user-name', 'Ada Ünïcode', '--user-email', 'ada@example.com', '--branch', 'main'],
  )
  const content = await contentOf(first)
  expect(content.length).toBeGreaterThan(15)
  expect(await move(first, postgres.settings)).toBe('')
  expect(await contentOf(postgres.settings)).toEqual(content)
  expect(await move(postgres.settings, last)).toBe(`prompt-signals: Creating a new database in ${last.DATA_DIR}.\n`)
  expect(await contentOf(last)).toEqual(content)
})
