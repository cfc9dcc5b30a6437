import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { engine } from '../harness.ts'
import { createFolder, PROGRAM } from '../program.ts'
import { entry } from '../service.ts'
import { serveInTest, useDatabase } from '../use.ts'

const { operator, settings } = useDatabase()

test('concurrent commands wait for each other, and none is rejected', async () => {
  const names = Array.from({ length: 3 }, (_, index) => `concurrent ${index}`)
  const made = await Promise.all(names.map((name) => operator.one('orgs', 'create', '--name', name, '--plan', 'free')))
  expect(made.map(({ name }) => name)).toEqual(names)
  const listed = await operator.json('orgs', 'list')
  expect(listed.map(({ name }) => name)).toEqual(expect.arrayContaining(names))
})

async function runShell(line: string): Promise<[number, string]> {
  const shell = Bun.spawn(['bash', '-c', `set -o pipefail; ${line}`], {
    env: { PATH: process.env.PATH, PROGRAM, ...settings },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  return [await shell.exited, await shell.stderr.text()]
}

test('a reader that closes the pipe early is no error', async () => {
  expect(await runShell('"$PROGRAM" orgs list | true')).toEqual([0, ''])
})

test('a slow reader of a pipe gets the whole result, also of a command that fails after showing it', async () => {
  const rows = [{ verdict: 'worse', title: 'long '.repeat(40_000) }]
  const url = serveInTest(() => Response.json({ data: rows }))
  const key = `PROMPT_SIGNALS_KEY=psk_${'0'.repeat(36)}`
  const command = `${key} "$PROGRAM" impact --url ${url} --prompt pmt_${'0'.repeat(20)} --json`
  const readSlowly = 'dd bs=1 status=none | wc --bytes >&2'
  const bytes = `${JSON.stringify(rows[0]).length + 1}\n`
  expect(await runShell(`${command} | ${readSlowly}`)).toEqual([0, bytes])
  expect(await runShell(`${command} --fail-on worse 2>/dev/null | ${readSlowly}`)).toEqual([1, bytes])
})

test('a result that cannot be shown is a failure: a key would be lost', async () => {
  expect(await runShell('"$PROGRAM" version --json > /dev/full')).toEqual([
    1,
    expect.stringMatching(/^prompt-signals: The command succeeded, but its result could not be written: .*ENOSPC.*\n$/),
  ])
})

test('a backup that does not fit on the disk fails, and says what could not be written', async () => {
  const reason = (what: string): [number, string] => [
    1,
    expect.stringContaining(`prompt-signals: ${what} cannot be written: `),
  ]
  expect(await runShell('"$PROGRAM" backup - > /dev/full')).toEqual(reason('The output'))
  const file = join(createFolder(), 'backup')
  // Only the file: the engine's own files are larger.
  const backup = `import('${import.meta.dir}/../../src/lib/atomic_file.ts')
    .then(({ writeFileAtomically }) => writeFileAtomically('${file}', (put) => put('text')))
    .catch(({ message }) => console.error('prompt-signals: ' + message) ?? process.exit(1))`
  expect(await runShell(`ulimit -f 0; ${process.execPath} -e "${backup}"`)).toEqual(reason(file))
  expect(readdirSync(dirname(file))).toEqual([])
})

if (engine === 'embedded') {
  test('a database that does not fit on the disk says so', async () => {
    const [, line] = await runShell(`ulimit -f 100; DATA_DIR=${createFolder()} "$PROGRAM" init`)
    expect(line).toMatch(/\nprompt-signals: \S+\/pgdata cannot be created: is the disk full\? \(.+\)\n$/)
    const { id: org } = await operator.one('orgs', 'create', '--name', 'Large', '--plan', 'free')
    const { id: prompt } = await operator.one('prompts', 'create', '--org', org, '--name', 'Large')
    const file = join(createFolder(), 'entries')
    await Bun.write(file, Array.from({ length: 12_000 }, () => `${JSON.stringify(entry({ prompt }))}\n`).join(''))
    // The log of a new database ends below this size, and above it with the import.
    const [, stopped] = await runShell(`ulimit -f 2800; "$PROGRAM" history import ${file}`)
    expect(stopped).toMatch(/^prompt-signals: .+ was lost \(the embedded database has stopped: .+\)\.\n$/)
    expect(await operator.json('history', 'list', '--prompt', prompt)).toEqual([])
  })
}
