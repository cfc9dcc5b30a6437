import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { createFolder, createTenant, errorLineOf, eventually, PROGRAM, run } from '../program.ts'
import { entry } from '../service.ts'
import { withPostgres } from '../services.ts'
import { postText } from '../signals/fixtures.ts'
import { useProgram } from '../use.ts'

const { client, operator, settings, tenant } = useProgram()

const createPrompt = async (): Promise<string> =>
  (await operator.one('prompts', 'create', '--org', tenant.org, '--name', 'Imported')).id

const importing = (prompt: string, lines: string[], ...more: string[]) =>
  run(['signals', 'import', '-', '--prompt', prompt, ...more], { settings, stdin: lines.join('\n') })

const imported = async (prompt: string, lines: string[]) =>
  JSON.parse((await importing(prompt, lines, '--json')).stdout) as object

const exported = async (prompt: string, ...more: string[]): Promise<string[]> =>
  (await operator.plain('signals', 'export', '--prompt', prompt, ...more)).split('\n').slice(0, -1)

const statsOf = async (prompt: string, since: string, until: string, ...more: string[]) =>
  (await operator.one('signals', 'stats', '--prompt', prompt, '--since', since, '--until', until, ...more)).data

/** What an import keeps of an exported line: all but the id and the prompt. */
const contentOf = (line: string): string => line.replace(/^\{"id":\d+,"prompt":"\w+",/, '')

const line = (created_at: string, metadata: object | null = null, value = 'positive') =>
  JSON.stringify({ value, metadata, created_at })

const entryLine = (more: object) => JSON.stringify(entry({ prompt: tenant.prompt, ...more }))

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

test.each(['standard input', 'a pipe'])('an import that waits for %s blocks no other session', async (source) => {
  const pipe = join(createFolder(), crypto.randomUUID())
  expect(Bun.spawnSync(['mkfifo', pipe]).exitCode).toBe(0)
  const isPipe = source === 'a pipe'
  const slow = Bun.spawn([PROGRAM, 'history', 'import', isPipe ? pipe : '-'], {
    env: { ...settings },
    stdin: 'pipe',
    stdout: 'pipe',
  })
  const writer = isPipe ? Bun.spawn(['sh', '-c', 'cat > "$0"', pipe], { stdin: 'pipe' }).stdin : slow.stdin
  writer.write(`${entryLine({ commit_sha: source })}\n`)
  writer.flush()
  // Far longer than the command takes to have its first line.
  for (const until = performance.now() + 1_500; performance.now() < until; await Bun.sleep(50)) {
    expect((await client.postSignal(tenant.prompt, tenant.key)).status).toBe(201)
    expect(await countOpenTransactions()).toBe(0)
  }
  writer.end()
  expect([await slow.exited, await slow.stdout.text()]).toEqual([0, 'recorded 1, already known 0\n'])
})

test('twenty thousand lines are recorded, and keep their order', async () => {
  const readPage = () => client.getHistory(tenant.prompt, tenant.key, '?limit=2')
  const { total_count: before } = (await readPage()).body.pagination
  // And one, so that the last that are written together are not as many as the others.
  const lines = Array.from({ length: 20_001 }, (_, index) => entryLine({ commit_sha: `c${index}` }))
  const imported = await run(['history', 'import', '-', '--json'], { settings, stdin: lines.join('\n') })
  expect(imported).toEqual({ status: 0, stdout: '{"recorded":20001,"known":0}\n', stderr: '' })
  const { data, pagination } = (await readPage()).body
  expect(data).toMatchObject([{ commit_sha: 'c20000' }, { commit_sha: 'c19999' }])
  expect(pagination.total_count).toBe(before + 20_001)
})

test.each(['ndjson', 'csv'])('an export as %s, imported twice, is the same signals once', async (format) => {
  const { prompt: source, org } = tenant
  const text = '{"big":12345678901234567890,"text":"a \\"b\\", c\\nd"}'
  // Longer when exported than the 16 KiB that may be sent.
  const longer = [`{"list":[${Array(8_000).fill(1)}]}`, `{"list":[1e131000,${Array(4_000).fill('1e9')}]}`]
  for (const metadata of [text, '{"rate":1.50}', '{}', ...longer]) {
    expect((await postText(client, tenant, `{"value":"negative","metadata":${metadata}}`)).status).toBe(201)
  }
  await importing(source, [line('2019-02-28T23:59:59.999Z', { commit_sha: 'c0ffee1' }), line('2020-01-01T00:00:00Z')])
  await importing(source, [line('0001-01-01T00:00:00Z')])
  const before = (await exported(source)).map(contentOf)
  const lines = await exported(source, '--format', format)
  const target = await createPrompt()
  expect(await imported(target, lines)).toEqual({ recorded: before.length, known: 0, refused: 0 })
  expect((await exported(target)).map(contentOf)).toEqual(before)
  expect((await importing(target, lines)).stdout).toBe(`recorded 0, already known ${before.length}\n`)
  expect(await imported(source, lines)).toEqual({ recorded: 0, known: before.length, refused: 0 })
  expect(await statsOf(target, '2019-02-28', '2020-01-02', '--interval', 'month')).toHaveLength(12)
  const both = await operator.plain('signals', 'export', '--org', org)
  expect(errorLineOf(await importing(target, both.split('\n')))).toMatch(/^Line \d+: The file has signals of several /)
})

test('an import that was killed and repeated, in any order, has every line once, and equal lines as often as given', async () => {
  const prompt = await createPrompt()
  const times = Array.from({ length: 900 }, (_, n) => new Date(Date.UTC(2021, 5, 1, 0, 0, n)).toISOString())
  // Each signal three times, far apart in the file.
  const lines = [...times, ...times, ...times].map((time) => line(time, { n: 1 }))
  const first = Bun.spawn([PROGRAM, 'signals', 'import', '-', '--prompt', prompt], {
    env: { ...settings },
    stdin: Buffer.from(lines.join('\n')),
  })
  await eventually(async () => (await exported(prompt)).length > 0, true)
  first.kill('SIGKILL')
  await first.exited
  const reversed = lines.toReversed()
  await Promise.all([importing(prompt, reversed), importing(prompt, reversed)])
  expect(await imported(prompt, lines)).toEqual({ recorded: 0, known: 2_700, refused: 0 })
  expect(await exported(prompt)).toHaveLength(2_700)
  const [day] = await statsOf(prompt, '2021-06-01', '2021-06-02')
  expect(day).toMatchObject({ positive: 2_700, negative: 0 })
})

test('a file with columns of its own is imported by their names; a line without a value is none', async () => {
  const prompt = await createPrompt()
  const columns = ['value=thumb', 'created_at=at', 'commit_sha=version', 'order=id'].flatMap((one) => ['--column', one])
  const options = [...columns, '--positive', 'up,1,true']
  const csv = [
    'thumb,at,version,id,mail',
    'up,2021-03-04T05:06:07Z,c0ffee1,1,a@b',
    '"down",1614834368,c0ffee2,"2, b",',
    ',,,,',
  ]
  const ndjson = ['{"thumb":true,"at":1614834369123,"version":"c0ffee3","id":9007199254740993,"mail":"a@b"}']
  expect((await importing(prompt, csv, ...options)).stdout).toBe('recorded 2, already known 0\n')
  expect((await importing(prompt, ndjson, ...options)).stdout).toBe('recorded 1, already known 0\n')
  expect((await importing(prompt, csv, ...options)).stdout).toBe('recorded 0, already known 2\n')
  expect((await exported(prompt)).map(contentOf)).toEqual([
    '"value":"positive","metadata":{"order": "1", "commit_sha": "c0ffee1"},"created_at":"2021-03-04T05:06:07.000Z"}',
    '"value":"negative","metadata":{"order": "2, b", "commit_sha": "c0ffee2"},"created_at":"2021-03-04T05:06:08.000Z"}',
    '"value":"positive","metadata":{"order": 9007199254740993, "commit_sha": "c0ffee3"},"created_at":"2021-03-04T05:06:09.123Z"}',
  ])
  const subjects = [...options, '--column', 'subject=id']
  const later = ndjson.map((given) => given.replace('9123', '9124'))
  expect((await importing(prompt, [...ndjson, ...later], ...subjects)).stdout).toBe('recorded 1, already known 1\n')
  expect((await exported(prompt)).at(-1)).toContain('"subject":"9007199254740993"')
  const endless = await importing(prompt, [`{"thumb":true,"at":1614834369,"id":${'9'.repeat(256)}}`], ...subjects)
  expect(errorLineOf(endless)).toBe('Line 1: The signal is not valid. /subject must have at most 255 characters')
  const list = await importing(prompt, [...ndjson, '["up"]'], ...options)
  expect(errorLineOf(list)).toBe('Line 2: The signal is not valid. it must be an object')
  const nanoseconds = await importing(prompt, ['{"thumb":1,"at":1614834369123456789}'], ...columns.slice(0, 4))
  expect(errorLineOf(nanoseconds)).toContain('Line 1: The signal is not valid. ')
  const other = await importing(prompt, csv, '--column', 'value=rating')
  expect(errorLineOf(other)).toBe('Line 1: The file has no column rating.')
  const unmapped = await importing(prompt, csv, ...columns)
  expect(errorLineOf(unmapped)).toBe('Line 2: The signal is not valid. /value must be positive or negative')
})

test('signals of past months count towards no limit, those of the current month do', async () => {
  const { org, prompt } = await createTenant(settings, 2)
  const now = new Date().toISOString()
  const lines = [line(now, { n: 1 }), line('2022-03-04T05:06:07Z'), line(now, { n: 2 }), line(now, { n: 3 })]
  const { status, stdout, stderr } = await importing(prompt, lines)
  expect({ status, stdout }).toEqual({ status: 1, stdout: 'recorded 3, already known 0\n' })
  expect(stderr).toMatch(/^prompt-signals: The monthly limit has no room for 1 signal of this month\. Raise the limit /)
  const used = async () => (await operator.json('orgs', 'list')).find(({ id }) => id === org)?.used
  expect(await used()).toBe(2)
  await operator.one('orgs', 'set-plan', org, 'free')
  expect(await imported(prompt, lines)).toEqual({ recorded: 1, known: 3, refused: 0 })
  expect(await used()).toBe(3)
})

test('a line without an end is rejected, not waited for', async () => {
  const failed = await run(['signals', 'import', '/dev/zero', '--prompt', tenant.prompt], { settings })
  expect(errorLineOf(failed)).toMatch(/^\/dev\/zero cannot be read: a line is longer than \d+ characters$/)
})

test('the memory of an import does not grow with its file', async () => {
  const folder = createFolder()
  /** Checks a file whose last line is not valid, and returns the memory that this took. */
  const memoryFor = async (megabytes: number): Promise<number> => {
    const file = join(folder, `${megabytes}.ndjson`)
    const writer = Bun.file(file).writer()
    for (let n = 0; n < megabytes * 500; n += 1) {
      writer.write(`${line('2022-01-01T00:00:00Z', { text: randomBytes(1_425).toString('base64') })}\n`)
    }
    writer.write('{')
    await writer.end()
    const child = Bun.spawn([PROGRAM, 'signals', 'import', file, '--prompt', tenant.prompt], {
      env: { ...settings },
      stderr: 'pipe',
    })
    expect(await new Response(child.stderr).text()).toContain(`Line ${megabytes * 500 + 1}: This is not JSON.`)
    await child.exited
    return child.resourceUsage()?.maxRSS as number
  }
  const [small, large] = [await memoryFor(1), await memoryFor(60)]
  expect(large - small).toBeLessThan(60_000_000)
})
