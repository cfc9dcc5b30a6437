import { beforeAll, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createGit } from '../../src/git/program.ts'
import { openRepository } from '../../src/git/repository.ts'
import { type Clone, createClone, gitEnvironment, runGit } from '../git/clone.ts'
import { createFolder, errorLineOf, rejectionOf, run, type Settings } from '../program.ts'
import { serveInTest, useDatabase } from '../use.ts'

const database = useDatabase()
const { operator } = database
let org: string
let prompt: string
let clone: Clone

beforeAll(async () => {
  org = (await operator.one('orgs', 'create', '--name', 'Acme', '--plan', 'team')).id
  const file = ['--repository', 'acme/prompts', '--path', 'a.md']
  prompt = (await operator.one('prompts', 'create', '--org', org, '--name', 'a', ...file)).id
  clone = createClone()
  clone.change('Begin', 'a.md')
  clone.change('Change (#2)', 'a.md')
})

const sync = (args: string[], settings: Settings = {}) =>
  run(['sync', ...args], { settings: { ...database.settings, ...settings } })

const cloneOf = (...options: string[]): string => {
  const folder = join(createFolder(), 'clone')
  runGit('/', ['-c', 'protocol.file.allow=always', 'clone', '--quiet', ...options, `file://${clone.folder}`, folder])
  runGit(folder, ['remote', 'set-url', 'origin', 'https://github.com/acme/prompts.git'])
  return folder
}

/** Another clone with one commit that adds the files. */
function createOther(origin?: string | null, paths = ['a.md'], message = 'Add', more = {}): Clone {
  const other = createClone(origin)
  for (const path of paths) other.write(path)
  other.commit(message, more)
  return other
}

const detached = () => {
  const { git, folder } = createOther()
  git('switch', '--quiet', '--detach')
  return { folder }
}
const partial = () => {
  clone.git('config', 'uploadpack.allowFilter', 'true')
  return { folder: cloneOf('--filter=blob:none', '--no-checkout') }
}
const unlinked = ['--repository', 'acme/other']

/** Options for the clone, or what makes another one. */
type Given = string[] | (() => { folder: string; more?: string[]; settings?: Settings })

test.each<[string, string, Given]>([
  ['a folder that is no repository', 'is not a git repository', () => ({ folder: createFolder() })],
  ['a folder that is not there', 'is not a git repository', () => ({ folder: '/nonexistent' })],
  ['a shallow clone', 'fetch-depth: 0', () => ({ folder: cloneOf('--depth=1') })],
  ['a partial clone', 'Clone without --filter', partial],
  ['a repository without commits', 'has no commits yet', () => createClone()],
  ['a detached clone', 'Say which one to read: --branch NAME', detached],
  ['a branch that is not there', 'There is no branch other', ['--branch', 'other']],
  [
    'a default branch that was renamed',
    'There is no branch old in the clone. If the default branch was renamed, run: git remote set-head origin --auto',
    () => {
      const folder = cloneOf()
      runGit(folder, ['symbolic-ref', 'refs/remotes/origin/HEAD', 'refs/remotes/origin/old'])
      return { folder }
    },
  ],
  ['a commit before a branch', 'There is no branch main~1', ['--branch', 'main~1']],
  ['an entry of the reflog', 'There is no branch main@{0}', ['--branch', 'main@{0}']],
  ['HEAD for a branch', 'There is no branch HEAD', () => ({ folder: cloneOf(), more: ['--branch', 'HEAD'] })],
  ['an option for a branch', 'There is no branch --output=/tmp/x', ['--branch=--output=/tmp/x']],
  ['a clone without a remote', 'Say which repository it is: --repository', () => createOther(null)],
  ['a remote that is a folder', 'The remote origin is not at a host', () => createOther('/srv/git/prompts.git')],
  ['a repository that is none', 'must be OWNER/NAME on github.com', ['--repository', 'prompts']],
  ['an unlinked repository', 'No prompt is linked to a file of acme/other', unlinked],
  ['a pattern without files', 'No file on main matches *.txt', [...unlinked, '--create', '*.txt']],
  [
    'a pattern without files, beside a linked prompt',
    'No file on main matches *.txt. A pattern is a path from the root of the repository, in quotation marks.',
    ['--create', '*.txt'],
  ],
  ['a pattern that is none', 'has a { without its }', ['--create', '{a']],
  [
    'a file that no prompt can be linked to, and no other',
    'No prompt can be created: z\\u{1b}[31m.md has a name that no prompt can have',
    () => ({ ...createOther('https://github.com/acme/odd', ['z\u001b[31m.md']), more: ['--create', '*.md'] }),
  ],
  [
    'a map in a folder that is not there',
    '--map: /nonexistent/map.json cannot be written',
    ['--map', '/nonexistent/map.json'],
  ],
  ['a map without a name', '--map: "" is not the name of a file', ['--map', '']],
  ['a map in a folder only', '"maps/" is not the name of a file', ['--map', 'maps/']],
  [
    'a map that would take the place of a device',
    '--map: /dev/null cannot be written: it exists and is not a file',
    ['--map', '/dev/null'],
  ],
  [
    'a repository of a newer git',
    'git failed: unknown repository extension found: storedelsewhere',
    () => {
      const newer = createOther()
      newer.git('config', 'core.repositoryFormatVersion', '1')
      newer.git('config', 'extensions.storedElsewhere', 'true')
      return newer
    },
  ],
  [
    'a machine without git',
    'git is needed, and is not on the PATH',
    () => ({ ...clone, settings: { PATH: '/nonexistent' } }),
  ],
])('%s is rejected with one line, and nothing is written', async (_, line, given) => {
  const { folder, more = [], settings } = Array.isArray(given) ? { ...clone, more: given, settings: {} } : given()
  expect(errorLineOf(await sync([folder, '--org', org, ...more], settings))).toContain(line)
  expect(await operator.json('history', 'list', '--prompt', prompt)).toEqual([])
  expect(await operator.json('prompts', 'list', '--org', org)).toHaveLength(1)
})

test('a repository of somebody else is rejected with what to do about it', async () => {
  const environment = { ...gitEnvironment, GIT_TEST_ASSUME_DIFFERENT_OWNER: '1' }
  const git = createGit(clone.folder, environment, new AbortController().signal)
  const rejection = await rejectionOf(openRepository(git, clone.folder, { branch: null, repository: null }))
  expect(rejection).toBe(
    `git does not trust ${clone.folder}, because somebody else owns it. If you do, run: ` +
      `git config --global --add safe.directory ${clone.folder}`,
  )
})

test('a clone is read where git looks for no bare repositories', async () => {
  const explicit = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.bareRepository', GIT_CONFIG_VALUE_0: 'explicit' }
  expect((await sync([clone.folder, '--org', org, '--dry-run'], explicit)).status).toBe(0)
})

test('nothing that the configuration of a repository names is run', async () => {
  const hostile = createOther()
  hostile.change('Attributes', '.gitattributes', { text: '*.md diff=x filter=x\n' })
  // A merge that changes the file itself is read as a patch.
  hostile.changeOn('topic', 'On topic')
  hostile.git('merge', '--quiet', '--no-ff', '--no-commit', 'topic')
  hostile.change("Merge branch 'topic'", 'a.md')
  const trap = join(createFolder(), 'trap')
  const proof = `${trap}.sprung`
  await writeFile(trap, `#!/bin/sh\ntouch ${proof}\n`)
  await chmod(trap, 0o755)
  const names = ['core.fsmonitor', 'core.pager', 'pager.rev-list', 'diff.external', 'diff.x.textconv', 'diff.x.command']
  for (const name of [...names, 'filter.x.clean', 'filter.x.smudge', 'gpg.program', 'core.sshCommand', 'core.editor']) {
    hostile.git('config', name, trap)
  }
  hostile.git('config', 'log.showSignature', 'true')
  hostile.git('config', 'core.hooksPath', createFolder())
  const { status, stdout } = await sync([hostile.folder, '--org', org, '--dry-run'])
  expect(stdout).toContain('would add 3 entries')
  expect({ status, isSprung: existsSync(proof) }).toEqual({ status: 0, isSprung: false })
})

test('a pipe in the place of a file that git reads stops nothing, or ends with one line', async () => {
  const hostile = createOther()
  const pipe = join(createFolder(), 'pipe')
  Bun.spawnSync(['mkfifo', pipe, join(hostile.folder, '.mailmap')])
  hostile.git('config', 'mailmap.file', pipe)
  expect((await sync([hostile.folder, '--org', org, '--dry-run'])).status).toBe(0)
  hostile.git('config', 'include.path', pipe)
  const git = createGit(hostile.folder, gitEnvironment, new AbortController().signal, 300)
  const rejection = await rejectionOf(openRepository(git, hostile.folder, { branch: null, repository: null }))
  expect(rejection).toBe('git wrote nothing for 0.3 seconds, and was stopped.')
})

test('no name in a repository steers the terminal, that of its branch included', async () => {
  const odd = createOther(undefined, ['a.md'], 'Begin', { author: 'Eve \u009b31m\u202e <eve@example.com>' })
  odd.git('checkout', '--quiet', '-b', 'odd\u009b31m')
  const { status, stdout, stderr } = await sync([odd.folder, '--org', org, '--dry-run'])
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).toContain('acme/prompts odd 31m: 1 prompt,')
  expect(stdout.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Bidi_Control}]/u)
})

test.each([
  [[], 'give either --org or --url'],
  [['--org', 'org_1', '--url', 'http://localhost'], 'give either --org or --url'],
  [['--url', 'localhost:3000'], '--url must begin with http:// or https://'],
  [['--org', 'org_1', '--dry-run', '--map', 'x'], '--map is not written by a --dry-run'],
  [['--org', 'org_1', 'two', 'folders'], 'takes at most 1 argument, not 2'],
])('%j is wrong usage', async (args, line) => {
  const { status, stderr } = await sync(args)
  expect({ status, line: stderr.split('\n')[0] }).toEqual({ status: 2, line: `prompt-signals: ${line}` })
})

const rejectionAt = async (url: string, settings: Settings = {}) =>
  errorLineOf(await sync([clone.folder, '--url', url], settings))

test('without a key, or with a text that is none, it says so and shows no secret', async () => {
  expect(await rejectionAt('http://127.0.0.1:9')).toContain('Set PROMPT_SIGNALS_KEY')
  expect(await rejectionAt('http://127.0.0.1:9', { PROMPT_SIGNALS_KEY: 'hunter2' })).toBe(
    'PROMPT_SIGNALS_KEY must be an API key, which begins with psk_',
  )
})

test('an address that is not the service, or leads elsewhere, gets an answer that says so, and the key goes nowhere else', async () => {
  const seen: string[] = []
  const address = serveInTest(({ url }) => {
    const { pathname } = new URL(url)
    seen.push(pathname)
    if (pathname.startsWith('/elsewhere')) return Response.redirect('/stolen', 302)
    return new Response('<h1>Hello</h1>', { headers: { 'content-type': 'text/html' } })
  })
  const settings = { PROMPT_SIGNALS_KEY: `psk_${'0'.repeat(36)}` }
  expect(await rejectionAt(address, settings)).toContain('not how the service answers')
  expect(await rejectionAt(`${address}/elsewhere`, settings)).toContain('does not answer')
  expect(seen.filter((path) => path === '/stolen')).toEqual([])
})
