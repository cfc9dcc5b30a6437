import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createFolder, errorLineOf, PROGRAM, run } from '../program.ts'
import { entry } from '../service.ts'
import { withPostgres } from '../services.ts'
import { useProgram } from '../use.ts'

const { client, settings, tenant } = useProgram()

const folder = createFolder()

const line = (more: object = {}) => JSON.stringify(entry({ prompt: tenant.prompt, ...more }))

function fileOf(text: string | Uint8Array): string {
  const path = join(folder, `${crypto.randomUUID()}.jsonl`)
  writeFileSync(path, text)
  return path
}

const importing = (from: string, stdin?: string) =>
  run(['history', 'import', from, '--json'], { settings, ...(stdin === undefined ? {} : { stdin }) })

const counts = (recorded: number, known = 0) => `${JSON.stringify({ recorded, known })}\n`

/** On the embedded engine a transaction shows in another way: no other session gets a result while it is open. */
async function countOpenTransactions(): Promise<number> {
  if (!settings.DATABASE_URL) return 0
  return withPostgres(settings.DATABASE_URL, async (sql) => {
    const [row] = await sql<{ n: number }[]>`
      select count(*)::int as n from pg_stat_activity
      where datname = current_database() and state = 'idle in transaction'`
    return row?.n as number
  }) as Promise<number>
}

async function recorded(): Promise<{ total: number; newest: string[] }> {
  const { body } = await client.getHistory(tenant.prompt, tenant.key)
  return { total: body.pagination.total_count, newest: body.data.map((one: { commit_sha: string }) => one.commit_sha) }
}

test('accepts lines of any ending, blank ones too, from a file or standard input', async () => {
  const text = `${line({ commit_sha: 'first' })}\r\n\r\n   \n${line({ commit_sha: 'second' })}\n\n${line({ commit_sha: 'third' })}`
  expect(await importing(fileOf(text))).toEqual({ status: 0, stdout: counts(3), stderr: '' })
  expect(await recorded()).toEqual({ total: 3, newest: ['third', 'second', 'first'] })
  const other = text.replace('third', 'fourth')
  // Entries that exist already are skipped.
  expect(await importing('-', other)).toEqual({ status: 0, stdout: counts(1, 2), stderr: '' })
  expect(await recorded()).toEqual({ total: 4, newest: ['fourth', 'third', 'second', 'first'] })
})

test('records a rollback to a new commit, past one that is known', async () => {
  const deployed = (commit_sha: string, day: number) =>
    line({ commit_sha, branch_name: 'rollback', created_at: `2026-01-0${day}T00:00:00Z` })
  expect(await importing('-', deployed('b', 2))).toMatchObject({ stdout: counts(1) })
  const both = `${deployed('a', 1)}\n${deployed('a', 3)}`
  expect(await importing('-', both)).toMatchObject({ stdout: counts(2) })
})

test('lines in no order of time lead to the same history, also when they are thousands', async () => {
  const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1) + seconds * 1_000).toISOString()
  const deployed = (commit_sha: string, seconds: number) =>
    line({ commit_sha, branch_name: 'unordered', created_at: at(seconds) })
  const others = Array.from({ length: 2_000 }, (_, index) => deployed(`other${index}`, 1_000 + index))
  const lines = [deployed('a', 4), deployed('a', 3), deployed('a', 1), ...others, deployed('b', 2)]
  expect(await importing('-', lines.join('\n'))).toMatchObject({ stdout: counts(2_003, 1) })
  const { body } = await client.getHistory(tenant.prompt, tenant.key, `?branch=unordered&until=${at(999)}`)
  const shown = body.data.map(({ commit_sha, created_at }: Record<string, string>) => [commit_sha, created_at])
  expect(shown).toEqual([
    ['a', at(3)],
    ['b', at(2)],
    ['a', at(1)],
  ])
})

test('accepts a file with a byte order mark', async () => {
  const { total } = await recorded()
  expect(await importing(fileOf(`\uFEFF${line()}\n`))).toMatchObject({ status: 0, stdout: counts(1) })
  expect((await recorded()).total).toBe(total + 1)
})

test('records nothing from empty input', async () => {
  for (const text of ['', '\n', '\r\n\r\n']) {
    expect(await importing('-', text)).toEqual({ status: 0, stdout: counts(0), stderr: '' })
  }
  const plain = await run(['history', 'import', '/dev/null'], { settings })
  expect(plain).toEqual({ status: 0, stdout: 'recorded 0, already known 0\n', stderr: '' })
})

test('keeps texts as they are, with other characters that end a line, and rejects what is not UTF-8', async () => {
  const { total } = await recorded()
  const name = 'a\u2028b\u2029c'
  expect(await importing(fileOf(line({ branch_name: name })))).toMatchObject({ stdout: counts(1) })
  const { body } = await client.getHistory(tenant.prompt, tenant.key)
  expect(body.data[0].branch_name).toBe(name)
  const broken = fileOf(Buffer.from(line({ commit_sha: 'a?b' })).map((byte) => (byte === 0x3f ? 0xff : byte)))
  expect(errorLineOf(await importing(broken))).toBe(`${broken} cannot be read: it is not UTF-8`)
  expect((await recorded()).total).toBe(total + 1)
})

test.each(['standard input', 'a pipe'])('an import that waits for %s blocks no other session', async (source) => {
  const pipe = join(folder, crypto.randomUUID())
  expect(Bun.spawnSync(['mkfifo', pipe]).exitCode).toBe(0)
  const isPipe = source === 'a pipe'
  const slow = Bun.spawn([PROGRAM, 'history', 'import', isPipe ? pipe : '-'], {
    env: { ...settings },
    stdin: 'pipe',
    stdout: 'pipe',
  })
  const writer = isPipe ? Bun.spawn(['sh', '-c', 'cat > "$0"', pipe], { stdin: 'pipe' }).stdin : slow.stdin
  writer.write(`${line({ commit_sha: source })}\n`)
  writer.flush()
  // Far longer than the command takes to have its first line.
  for (const until = performance.now() + 1_500; performance.now() < until; await Bun.sleep(50)) {
    expect((await client.postSignal(tenant.prompt, tenant.key)).status).toBe(201)
    expect(await countOpenTransactions()).toBe(0)
  }
  writer.end()
  expect([await slow.exited, await slow.stdout.text()]).toEqual([0, 'recorded 1, already known 0\n'])
})

test.each([
  ['not JSON', () => '{', /^Line 3: This is not JSON\.$/],
  ['no object', () => '[1]', /^Line 3: .* \/prompt must be a prompt id$/],
  ['an unknown prompt', () => line({ prompt: 'pmt_none' }), /^Line 3: There is no prompt pmt_none\.$/],
  ['a NUL', () => line({ commit_sha: 'a\0b' }), /^Line 3: .* \/commit_sha contains characters that are not/],
])('a last line with %s leaves nothing behind and is named', async (_, bad, message) => {
  const before = await recorded()
  const rejection = errorLineOf(await importing('-', `${line()}\n${line()}\n${bad()}`))
  expect(rejection).toMatch(message)
  expect(await recorded()).toEqual(before)
})

test('twenty thousand lines are recorded, and keep their order', async () => {
  const before = await recorded()
  // And one, so that the last that are written together are not as many as the others.
  const lines = Array.from({ length: 20_001 }, (_, index) => line({ commit_sha: `c${index}` }))
  expect(await importing('-', lines.join('\n'))).toEqual({ status: 0, stdout: counts(20_001), stderr: '' })
  const { total, newest } = await recorded()
  expect([total, newest.slice(0, 2)]).toEqual([before.total + 20_001, ['c20000', 'c19999']])
})

test('a file that cannot be read is named', async () => {
  const missing = join(folder, 'missing.jsonl')
  expect(errorLineOf(await importing(missing))).toStartWith(`${missing} cannot be read: `)
  expect(errorLineOf(await importing(folder))).toStartWith(`${folder} cannot be read: `)
})
