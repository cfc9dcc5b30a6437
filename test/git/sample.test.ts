import { beforeAll, expect, test } from 'bun:test'
import { lstat, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readBlock } from '../documents.ts'
import { createFolder, type Row, readJsonLines, rejectionOf, run } from '../program.ts'
import { useProgram } from '../use.ts'
import { createClone, gitEnvironment, runGit } from './clone.ts'

const { server, operator } = useProgram()
const sample = join(createFolder(), 'sample')
const clone = join(sample, 'clone')

beforeAll(() => {
  const { exitCode, stderr } = Bun.spawnSync(['scripts/sample-repository.sh', sample])
  expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: '' })
})

const ada = 'Ada Lovelace <ada@example.com>'
const grace = 'Grace Hopper <grace@example.com>'

/** Oldest first, each as docs/git.md has it. */
const expected: Record<string, string[]> = {
  'prompts/welcome.md': [
    `2026-09-01T10:00 deployed 40c4331b ${ada}`,
    `2026-09-01T11:00 deployed 5ee91a81 ${grace}`,
    `2026-09-01T15:00 pr_merged f528b1a7 ${ada} https://github.com/acme/prompts/pull/1`,
    `2026-09-01T18:00 pr_merged 1ed31fc5 ${grace} https://github.com/acme/prompts/pull/2`,
    `2026-09-01T22:00 deployed a6e95b41 ${ada}`,
    `2026-09-01T23:00 deployed b2ff5062 ${ada}`,
  ],
  'prompts/farewell.md': [
    `2026-09-01T10:00 deployed 40c4331b ${ada}`,
    `2026-09-01T13:00 deployed f5316576 ${ada}`,
    `2026-09-01T18:00 pr_merged 1ed31fc5 ${grace} https://github.com/acme/prompts/pull/2`,
    `2026-09-01T21:00 deployed ddc47237 ${grace}`,
    `2026-09-02T03:00 deployed 8cca4558 ${grace}`,
  ],
  'prompts/refund.md': [`2026-09-02T01:00 deployed 35e4ae92 ${ada}`],
}

async function readHistories(org: string): Promise<Record<string, string[]>> {
  const prompts = await operator.json('prompts', 'list', '--org', org)
  const histories = prompts.map(async ({ id, path }) => {
    const entries = await operator.json('history', 'list', '--prompt', id, '--limit', '100')
    return [path, entries.reverse().map(describe)]
  })
  return Object.fromEntries(await Promise.all(histories))
}

const describe = ({ created_at, action, commit_sha, user, pr_url }: Row): string =>
  `${created_at.slice(0, 16)} ${action} ${commit_sha.slice(0, 8)} ${user.name} <${user.email}> ${pr_url ?? ''}`.trimEnd()

const createOrganisation = async (): Promise<string> =>
  (await operator.one('orgs', 'create', '--name', 'Acme', '--plan', 'team')).id

async function createLinked(org: string, path: string): Promise<string> {
  const file = ['--repository', 'Acme/Prompts', '--path', path]
  return (await operator.one('prompts', 'create', '--org', org, '--name', path, ...file)).id
}

const create = ['--create', 'prompts/**/*.md']
const withoutIds = ({ prompt: _, ...change }: Row) => change

test('an empty service gets every prompt and its history, moves the link of a renamed file, and says so', async () => {
  const org = await createOrganisation()
  const id = await createLinked(org, 'prompts/greeting.md')
  const map = join(createFolder(), 'map.json')
  const tried = await operator.json('sync', clone, '--org', org, ...create, '--dry-run')
  expect(await readHistories(org)).toEqual({ 'prompts/greeting.md': [] })
  const changes = await operator.json('sync', clone, '--org', org, ...create, '--map', map)
  expect(tried.map(withoutIds)).toEqual(changes.map(withoutIds))
  expect(changes.slice(0, 3)).toEqual([
    { change: 'moved', prompt: id, path: 'prompts/welcome.md', from: 'prompts/greeting.md', problem: null },
    { change: 'created', prompt: expect.stringMatching(/^pmt_/), path: 'prompts/farewell.md', name: 'farewell' },
    { change: 'created', prompt: expect.stringMatching(/^pmt_/), path: 'prompts/refund.md', name: 'refund' },
  ])
  expect(changes.slice(3).every(({ change }) => change === 'added')).toBe(true)
  expect(await readHistories(org)).toEqual(expected)
  expect(await Bun.file(map).json()).toEqual({
    'prompts/welcome.md': id,
    'prompts/farewell.md': changes[1]?.prompt,
    'prompts/refund.md': changes[2]?.prompt,
  })
  expect(await operator.json('sync', clone, '--org', org, ...create)).toEqual([])
  expect(await readHistories(org)).toEqual(expected)
  const audit = await operator.json('audit', 'list', '--org', org)
  const setLive = audit.flatMap(({ subject, details }) => (details.live_branch === 'main' ? subject : []))
  expect(setLive.sort()).toEqual([id, changes[1]?.prompt, changes[2]?.prompt].sort())
})

test('several patterns create prompts, except for files that one of --exclude matches', async () => {
  const org = await createOrganisation()
  const patterns = [
    '--create',
    'prompts/f*.md',
    '--create',
    '**/*.md',
    '--exclude',
    'README.*',
    '--exclude',
    '**/{r,x}*.md',
  ]
  const changes = await operator.json('sync', clone, '--org', org, ...patterns, '--dry-run')
  const created = changes.filter(({ change }) => change === 'created').map(({ path, name }) => [path, name])
  expect(created).toEqual([
    ['prompts/farewell.md', 'farewell'],
    ['prompts/welcome.md', 'prompts/welcome'],
  ])
  expect(await run(['sync', clone, '--org', org, '--exclude', '*.md'])).toMatchObject({
    ...{ status: 2, stderr: expect.stringContaining('--exclude needs --create') },
  })
})

test('a branch that no prompt follows is recorded only with --also, which makes it live for none', async () => {
  const org = await createOrganisation()
  const clone = createClone()
  clone.change('Begin', 'a.md')
  await operator.json('sync', clone.folder, '--org', org, '--create', '*.md')
  clone.git('switch', '--quiet', '--create', 'warmer')
  clone.change('Warmer', 'b.md')
  const sync = (...more: string[]) => operator.json('sync', clone.folder, '--org', org, '--create', '*.md', ...more)
  for (const more of [[], ['--dry-run']]) {
    const stopped = sync('--branch', 'warmer', ...more)
    expect(await rejectionOf(stopped)).toContain(
      'The prompts follow main, not warmer. To record warmer as well, add --also',
    )
  }
  expect(Object.values(await readHistories(org)).flat().length).toBe(1)
  await sync('--branch', 'warmer', '--also')
  expect(Object.values(await readHistories(org)).flat().length).toBe(3)
  const prompts = await operator.json('prompts', 'list', '--org', org)
  expect(prompts.map(({ path, live_branch }) => [path, live_branch])).toEqual([
    ['a.md', 'main'],
    ['b.md', null],
  ])
  const remove = (...more: string[]) => operator.one('history', 'remove', ...more)
  expect(await remove('--org', org, '--branch', 'warmer', '--dry-run')).toEqual({ entries: 2 })
  expect(await remove('--org', org, '--branch', 'warmer')).toEqual({ entries: 2 })
  expect(Object.values(await readHistories(org)).flat().length).toBe(1)
  const [a] = prompts as [Row]
  const of = ['--prompt', a.id, '--repository', 'acme/prompts', '--path']
  expect(await remove(...of, 'b.md')).toEqual({ entries: 0 })
  expect(await remove(...of, 'a.md')).toEqual({ entries: 1 })
  const wrong = await run(['history', 'remove', '1', '--prompt', a.id, '--branch', 'main'])
  expect(wrong).toMatchObject({ status: 2, stderr: expect.stringContaining('give either ID or --branch') })
})

test('an erased prompt comes back only if a pattern is the path of its file', async () => {
  const org = await createOrganisation()
  const clone = createClone()
  clone.write('a.md')
  clone.change('Begin', 'b.md')
  const sync = (...globs: string[]) =>
    operator.json('sync', clone.folder, '--org', org, ...globs.flatMap((glob) => ['--create', glob]))
  const [first] = await sync('*.md')
  await operator.one('prompts', 'erase', first?.prompt, '--yes')
  const problem = expect.stringContaining("--create 'a.md'")
  expect(await sync('*.md')).toEqual([{ change: 'skipped', prompt: null, path: 'a.md', problem }])
  expect((await sync('*.md', 'a.md')).map(({ change, path }) => [change, path])).toEqual([
    ['created', 'a.md'],
    ['added', 'a.md'],
  ])
  expect(await sync('*.md')).toEqual([])
})

test('over REST it makes the same histories with a key that can write prompts, and repeats them with one that cannot', async () => {
  const org = await createOrganisation()
  const { key: admin } = await operator.one('keys', 'create', '--org', org, '--preset', 'admin')
  const { key: ci } = await operator.one('keys', 'create', '--org', org, '--scopes', 'history:write,prompts:read')
  const sync = (key: string, ...more: string[]) =>
    run(['sync', clone, '--url', server.url, '--json', ...more], { settings: { PROMPT_SIGNALS_KEY: key } })
  const rejected = await sync(ci, ...create)
  expect(rejected).toMatchObject({ status: 1, stderr: expect.stringContaining('403') })
  const made = await sync(admin, ...create)
  expect(made).toMatchObject({ status: 0, stderr: expect.stringContaining('added 12 entries') })
  expect(await readHistories(org)).toEqual(expected)
  const repeated = await sync(ci)
  expect(repeated).toMatchObject({ status: 0, stdout: '' })
  expect(await readHistories(org)).toEqual(expected)
})

test('a key that may not change prompts records the history of a renamed file, and says that its link stays', async () => {
  const org = await createOrganisation()
  const id = await createLinked(org, 'prompts/greeting.md')
  const { key } = await operator.one('keys', 'create', '--org', org, '--scopes', 'history:write,prompts:read')
  const settings = { PROMPT_SIGNALS_KEY: key }
  const { status, stdout, stderr } = await run(['sync', clone, '--url', server.url, '--json'], { settings })
  expect(stderr).toContain('; 1 prompt without a live branch: the key lacks prompts:write')
  expect({ status, moved: JSON.parse(stdout.split('\n')[0] as string) }).toEqual({
    status: 0,
    moved: {
      ...{ change: 'moved', prompt: id, path: 'prompts/welcome.md', from: 'prompts/greeting.md' },
      problem: expect.stringContaining('prompts:write'),
    },
  })
  expect(await readHistories(org)).toEqual({ 'prompts/greeting.md': expected['prompts/welcome.md'] as string[] })
})

test('entries that a force push made unreachable are reported, on the database and over REST, and stay', async () => {
  const org = await createOrganisation()
  const scopes = ['--scopes', 'history:write,history:read,prompts:read']
  const { key } = await operator.one('keys', 'create', '--org', org, ...scopes)
  const { key: ci } = await operator.one('keys', 'create', '--org', org, '--scopes', 'history:write,prompts:read')
  // The remote as it was before the force push of the sample, and a clone of that time.
  const [final, louder = ''] = [
    runGit(clone, ['rev-parse', 'main']),
    runGit(clone, ['log', '--walk-reflogs', '--grep=Louder', '--format=%H', '--max-count=1']),
  ]
  const push = (commit: string) =>
    runGit(clone, ['push', '--quiet', '--force', join(sample, 'remote.git'), `${commit}:refs/heads/main`])
  const local = ['-c', 'protocol.file.allow=always']
  push(louder)
  const folder = join(createFolder(), 'clone')
  runGit('/', [...local, 'clone', '--quiet', join(sample, 'remote.git'), folder])
  const where = [folder, '--repository', 'https://github.com/acme/prompts']
  const fetch = () => runGit(folder, [...local, 'fetch', '--quiet', 'origin'])
  const overRest = async (by: string) => {
    const settings = { PROMPT_SIGNALS_KEY: by }
    const { stdout, stderr } = await run(['sync', ...where, '--url', server.url, '--json'], { settings })
    return { changes: readJsonLines(stdout), summary: stderr }
  }
  await operator.json('sync', ...where, '--org', org, ...create)
  const before = await readHistories(org)
  expect(before['prompts/welcome.md']?.at(-1)).toStartWith(`2026-09-02T00:00 deployed ${louder.slice(0, 8)}`)

  // Back to the commit before: a clone of that time would show the same.
  push(`${louder}~1`)
  fetch()
  const user = { name: 'Grace Hopper', email: 'grace@example.com' }
  const unreachable = {
    ...{ change: 'unreachable', prompt: expect.stringMatching(/^pmt_/), path: 'prompts/welcome.md' },
    problem: 'is not on main any more, or the clone is behind',
    ...{ id: expect.any(Number), action: 'deployed', user, commit_sha: louder, pr_number: null, pr_url: null },
    ...{ branch_name: 'main', created_at: '2026-09-02T00:00:00.000Z', title: 'Louder', authors: [] },
  }
  expect(await operator.json('sync', ...where, '--org', org, '--dry-run')).toEqual([unreachable])
  expect(await operator.json('sync', ...where, '--org', org)).toEqual([unreachable])
  expect(await readHistories(org)).toEqual(before)

  // And on, as the sample did.
  push(final)
  fetch()
  const certain = { ...unreachable, problem: 'is not on main any more' }
  const added = await operator.json('sync', ...where, '--org', org, ...create)
  expect(added.filter(({ change }) => change === 'unreachable')).toEqual([certain])
  expect(await overRest(key)).toEqual({
    changes: [certain],
    summary: expect.stringContaining('1 not on the branch any more'),
  })
  expect(await overRest(ci)).toEqual({ changes: [], summary: expect.stringContaining('the key lacks history:read') })
  const welcome = expected['prompts/welcome.md'] as string[]
  expect(await readHistories(org)).toEqual({
    ...expected,
    'prompts/welcome.md': [...welcome, `2026-09-02T00:00 deployed ${louder.slice(0, 8)} ${grace}`],
  })
  const [line] = (await operator.plain('sync', ...where, '--org', org)).replace(/pmt_\w+/g, 'pmt_…').split('\n')
  expect(line).toStartWith(`- 2026-09-02 deployed ${louder.slice(0, 8)} `)
  expect(await Bun.file('docs/git.md').text()).toContain(`\n${line}\n`)
})

test('a clone that is behind gives the old name of a renamed file no second prompt', async () => {
  const org = await createOrganisation()
  const renamed = createClone()
  const before = renamed.change('Begin', 'prompts/old.md')
  const sync = () => operator.json('sync', renamed.folder, '--org', org, ...create)
  await sync()
  const after = renamed.move('prompts/old.md', 'prompts/new.md', 'Rename')
  await sync()
  renamed.git('reset', '--quiet', '--hard', before)
  const path = 'prompts/old.md'
  const problem = 'may have been renamed: the clone is behind'
  expect(await sync()).toContainEqual({ change: 'skipped', prompt: null, path, problem })
  expect(Object.keys(await readHistories(org))).toEqual(['prompts/new.md'])
  renamed.git('reset', '--quiet', '--hard', after)
  renamed.change('Another one', path)
  expect(await sync()).toContainEqual({ change: 'created', prompt: expect.any(String), path, name: 'old' })
})

test('a map takes the place of a symbolic link, whole and for anyone to read', async () => {
  const org = await createOrganisation()
  const folder = createFolder()
  const [target, map] = [join(folder, 'target'), join(folder, 'map.json')]
  await writeFile(target, 'untouched')
  await symlink(target, map)
  await operator.json('sync', clone, '--org', org, ...create, '--map', map)
  expect((await readdir(folder)).sort()).toEqual(['map.json', 'target'])
  expect(await readFile(target, 'utf8')).toBe('untouched')
  const { mode } = await lstat(map)
  expect((mode & 0o777).toString(8)).toBe((0o666 & ~process.umask()).toString(8))
  expect(Object.keys(await Bun.file(map).json())).toEqual(Object.keys(expected).sort())
})

test('a merge of more commits than one call takes is one entry', async () => {
  const large = createClone()
  large.change('Begin', 'prompts/a.md')
  const commits = Array.from({ length: 2_100 }, (_, n) => {
    const by = `committer Ada <ada@example.com> ${Date.UTC(2026, 0, 1, 10) / 1_000 + n} +0000`
    const from = n === 0 ? 'from refs/heads/main^0\n' : ''
    return `commit refs/heads/warmer\n${by}\ndata 4\nSay\n${from}M 100644 inline prompts/a.md\ndata ${`${n}`.length}\n${n}\n`
  })
  const stdin = new Blob([commits.join('')])
  const imported = Bun.spawn(['git', '-C', large.folder, 'fast-import', '--quiet'], { env: gitEnvironment, stdin })
  expect(await imported.exited).toBe(0)
  large.merge('warmer', 'Merge pull request #7 from acme/warmer')

  const org = await createOrganisation()
  const id = await createLinked(org, 'prompts/a.md')
  const sync = async () => (await operator.json('sync', large.folder, '--org', org)).map(({ change }) => change)
  expect([await sync(), await sync()]).toEqual([['added', 'added'], []])
  expect(await operator.json('history', 'list', '--prompt', id)).toHaveLength(2)
})

test('the demonstration in docs/git.md is what the program shows', async () => {
  const org = await createOrganisation()
  const shown = await operator.plain('sync', clone, '--org', org, ...create)
  expect(shown.replace(/pmt_\w+/g, 'pmt_…')).toBe(await readBlock('docs/git.md', 'text'))
})
