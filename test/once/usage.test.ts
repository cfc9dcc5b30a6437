import { afterAll, expect, spyOn, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { nameOf } from '../../src/cli/command.ts'
import { loadCommands } from '../../src/cli/groups.ts'
import { runCommandLine } from '../../src/cli/run.ts'
import { expectedTime } from '../../src/lib/times.ts'
import { createDatabase } from '../harness.ts'
import { createFolder, type Finished, readJsonLines, run } from '../program.ts'

// Anything that opened this would fail with status 1.
process.env.DATA_DIR = '/proc/none'
process.stdin.isTTY = false
afterAll(() => {
  delete process.env.DATA_DIR
})

/** Runs a command line in this process. */
async function runHere(args: string[]): Promise<Finished> {
  const shown = { stdout: '', stderr: '' }
  const spies = (['stdout', 'stderr'] as const).map((name) =>
    spyOn(process[name], 'write').mockImplementation(((text: string, done?: () => void) => {
      shown[name] += text
      done?.()
      return true
    }) as typeof process.stdout.write),
  )
  try {
    return { status: await runCommandLine(args), ...shown }
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
}

const expiry = '--expires-at must be an ISO 8601 time with its zone, such as 2026-11-14T23:35:00Z'
const limit = (text: string) => `--monthly-limit must be a whole number from 0 to 2147483647, not "${text}"`
const scopes =
  'history:read, history:write, history:delete, signals:read, signals:write, signals:delete, prompts:read, prompts:write, usage:read, keys:read, keys:write, webhooks:read or webhooks:write'
const reportCommit = '--commit must be a hash, or at least its first 7 characters'
const reportSince = '--since must be a number of days such as 7d, or an ISO 8601 time'
const days = (text: string) => `DAYS must be a whole number from 1 to 36500, or none, not "${text}"`
const overlap = '--overlap must be such as 90s, 30m, 24h or 7d, and at most'
const create = ['orgs', 'create', '--name', 'A', '--plan', 'free']
const record = '--prompt pmt_x --user-name A --user-email a@example.com --commit-sha c0ffee1 --branch b'.split(' ')
const actions = 'deployed, pr_opened, pr_merged, pr_closed'
const purge = ['signals', 'purge', '--before', '2026-01-01']

test.each([
  [['orgs', 'create'], '--name, --plan missing'],
  [['orgs', 'create', '--plan'], "Option '--plan <value>' argument missing"],
  [['orgs', 'list', '--nope'], "Unknown option '--nope'"],
  [['orgs', 'list', '--json=yes'], "Option '--json' does not take an argument"],
  [['orgs', 'list', 'more'], 'takes no arguments, not 1'],
  [['orgs', 'set-plan', 'org_x'], 'takes 2 arguments, not 1'],
  [['keys', 'revoke'], 'takes 1 argument, not 0'],
  [['keys', 'update', 'key_x'], 'nothing to change is given'],
  [['keys', 'update', 'key_x', '--expires-at', 'never'], expiry],
  [['keys', 'update', 'key_x', '--expires-at', ''], expiry],
  [['keys', 'update', 'key_x', '--add-scope', 'x'], `--add-scope must be ${scopes}`],
  [
    ['keys', 'update', 'key_x', '--remove-scope', 'usage:read', '--preset', 'app'],
    '--remove-scope must be absent when scopes or a preset are given',
  ],
  [['keys', 'create', '--org', 'org_x', '--preset', 'browser'], '--origin must be given with the preset browser'],
  [['keys', 'create', '--org', 'org_x', '--scopes', 'signals:write,x'], `--scopes must be ${scopes}`],
  [
    ['keys', 'create', '--org', 'org_x', '--preset', 'app', '--scopes', 'usage:read'],
    '--preset must be absent when scopes are given',
  ],
  [['keys', 'create', '--org', 'org_x', '--expires-at', '2026-02-30T00:00:00Z'], expiry],
  [['endpoints', 'rotate', 'whe_x', '--overlap', '31d'], `${overlap} 30d, not "31d"`],
  [['keys', 'rotate', 'key_x', '--overlap', 'x'], `${overlap} 365d, not "x"`],
  [['endpoints', 'update', 'whe_x'], 'nothing to change is given'],
  [['prompts', 'update', 'pmt_x'], 'nothing to change is given'],
  [['history', 'record', ...record, '--action', 'merged'], `--action must be one of ${actions}, not "merged"`],
  [['prompts', 'create', '--org', 'org_x', '--name', 'A', '--path', 'a'], '--path needs --repository'],
  [[...create, '--monthly-limit', '-1'], limit('-1')],
  [[...create, '--name', 'B'], '--name must be given only once'],
  [[...create, '--monthly-limit', '2147483648'], limit('2147483648')],
  [['keys', 'create', '--org', 'org_x', '--name', 'x'.repeat(300)], '--name must have at most 200 characters'],
  [['impact', '--prompt', 'pmt_x', '--margin', '2'], '--margin must be a number from 0 to less than 1, such as 0.05'],
  [
    ['compare', '--prompt', 'pmt_x', '--base', 'v1', '--head', 'v2', '--share', '0.0'],
    '--share must be a number between 0 and 1, such as 0.5',
  ],
  [['impact', '--prompt', 'pmt_x', '--base', '2'], '--base needs --head'],
  [['signals', 'list', '--prompt', 'pmt_x', '--metadata', 'model'], '--metadata must be FIELD=TEXT, not "model"'],
  [[...create.slice(0, -1), 'gold'], '--plan must be one of free, team, business, not "gold"'],
  [['orgs', 'set-plan', 'org_x', 'gold'], 'PLAN must be one of free, team, business, not "gold"'],
  [['history', 'list', '--prompt', 'pmt_x', '--page=x'], '--page must be a whole number from 1 to 2147483647, not "x"'],
  [
    ['history', 'list', '--prompt', 'test', '--limit', '0'],
    '--limit must be a whole number from 1 to 2147483647, not "0"',
  ],
  [['history', 'remove', 'x', '--prompt', 'pmt_x'], 'ID must be the number of a history entry'],
  [['keys', 'list'], 'give either --org or --url'],
  [['keys', 'list', '--org', 'x', '--url', 'http://x'], 'give either --org or --url'],
  [['keys', 'list', '--url', 'example.com'], '--url must begin with http:// or https://'],
  [['keys', 'create', '--org', 'x', '--monthly-limit', 'none'], limit('none')],
  [
    ['impact', '--prompt', 'pmt_x', '--fail-on', 'bad'],
    '--fail-on must be some of better,worse,same,undecided, not "bad"',
  ],
  [['report'], 'give --org, --url or --prompt'],
  [['report', '--org', 'x', '--pr', '7', '--commit', '45c48cc'], 'give either --pr or --commit'],
  [['report', '--org', 'x', '--pr', 'seven'], '--pr must be the number or the address of a pull request, not "seven"'],
  [['report', '--org', 'x', '--commit', 'abc123'], `${reportCommit}, not "abc123"`],
  [['report', '--org', 'x', '--since', 'soon'], `${reportSince}, not "soon"`],
  [['api', 'get', '/prompts', '--org', 'x'], 'METHOD must be one of GET, POST, PUT, PATCH, DELETE, not "get"'],
  [['api', 'GET', 'prompts', '--org', 'x'], 'PATH must begin with /, such as /prompts, not "prompts"'],
  [['api', 'POST', '/prompts', '{', '--org', 'x'], 'JSON must be valid JSON'],
  [['signals', 'export'], 'give either --prompt or --org'],
  [['signals', 'export', '--prompt', 'pmt_x', '--org', 'org_x'], 'give either --prompt or --org'],
  [['signals', 'purge', '--before', 'yesterday', '--all-orgs'], `--before must be ${expectedTime}`],
  [[...purge, '--prompt', 'pmt_x', '--org', 'org_x'], 'give one of --prompt, --org and --all-orgs'],
  [purge, 'give one of --prompt, --org and --all-orgs'],
  [[...purge, '--all-orgs'], 'give --yes to erase without a question, or --dry-run to see how much'],
  [['orgs', 'set-retention', 'org_x', '0'], days('0')],
  [['orgs', 'set-retention', 'org_x', '36501'], days('36501')],
  [['serve', '--port', '65536'], '--port must be a port number from 0 to 65535, not "65536"'],
  [['serve', '--host', ''], '--host is empty: give it a value or unset it'],
])('%j is wrong usage', async (args, problem) => {
  const { status, stdout, stderr } = await runHere(args)
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  const [said, usage, ...more] = stderr.split('\n')
  expect([said, more]).toEqual([`prompt-signals: ${problem}`, ['']])
  expect(usage).toStartWith(
    `usage: prompt-signals ${args.slice(0, args[0] === 'api' || args[1]?.startsWith('--') ? 1 : 2).join(' ')}`,
  )
})

test('without a command, all are listed', async () => {
  const { status, stdout, stderr } = await runHere([])
  expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
  expect(stderr).toStartWith('prompt-signals COMMAND\n')
})

test.each(['nope', 'help nope', 'constructor', '__proto__', '--nope', 'orgz', 'orgs nope'])(
  '%s is no command, and one line says what to do',
  async (line) => {
    const stderr = `prompt-signals: There is no command "${line.replace('help ', '')}". See "prompt-signals --help".\n`
    expect(await runHere(line.split(' '))).toEqual({ status: 2, stdout: '', stderr })
  },
)

test('the name of a group lists the commands of the group', async () => {
  const list = expect.stringMatching(
    /^ {2}orgs create .*\n.*\n {2}orgs list\n.*\n {2}orgs set-plan .*\n.*\n {2}orgs set-retention .*\n.*\n {2}orgs update .*\n.*\n {2}orgs suspend ORG\n.*\n {2}orgs resume ORG\n.*\n$/,
  )
  for (const command of ['help orgs', 'orgs --help', 'orgs -h']) {
    expect(await runHere(command.split(' '))).toEqual({ status: 0, stdout: list, stderr: '' })
  }
  for (const [args, line] of [
    [['orgs'], '"orgs" is a group of commands:'],
    [['webhooks', 'github'], '"webhooks github" is a group of commands:'],
  ] as const) {
    const { status, stdout, stderr } = await runHere([...args])
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' })
    const [first, ...listed] = stderr.split('\n')
    expect(first).toBe(`prompt-signals: ${line}`)
    expect(listed.every((text) => text === '' || text.startsWith('      ') || text.startsWith(`  ${args[0]} `))).toBe(
      true,
    )
  }
})

test('--help lists every command; after a command, it is about that one', async () => {
  for (const args of [['--help'], ['-h'], ['help'], ['help', 'help'], ['help', '--help'], ['--help', '-h']]) {
    const { status, stdout, stderr } = await runHere(args)
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    const listed = stdout.match(/^ {2}\S.*/gm)?.map((line) => line.trim().split(/ [-A-Z[]/)[0])
    expect(listed).toEqual((await loadCommands()).map(nameOf))
  }
  const ways = ['keys revoke --help', 'keys revoke -h', 'help keys revoke', '--help keys revoke']
  for (const command of [...ways, 'help keys revoke --help']) {
    const { status, stdout, stderr } = await runHere(command.split(' '))
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(stdout).toStartWith('usage: prompt-signals keys revoke ID [--url URL] [--json]\n')
  }
})

test('version says which build it is', async () => {
  const { status, stdout, stderr } = await run(['version', '--json'])
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const { version } = await Bun.file(join(import.meta.dir, '../../package.json')).json()
  const runtime = `Bun ${Bun.version}`
  expect(readJsonLines(stdout)).toEqual([{ version, commit: expect.stringMatching(/./), runtime }])
  expect(await run(['--version', '--json'])).toEqual({ status, stdout, stderr })
  expect((await run(['--version'])).stdout).toMatch(
    new RegExp(`^version {2}${version}\ncommit {3}\\S+\nruntime {2}${runtime}\n$`),
  )
})

test('a secret can come from a file', async () => {
  const database = await createDatabase()
  const file = join(createFolder(), 'database-url')
  writeFileSync(file, `${database.settings.DATABASE_URL}\n`)
  expect(await run(['orgs', 'list', '--json'], { settings: { DATABASE_URL_FILE: file } })).toEqual({
    status: 0,
    stdout: '',
    stderr: '',
  })
  await database.close()
})
