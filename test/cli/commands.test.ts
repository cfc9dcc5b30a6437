import { beforeAll, expect, test } from 'bun:test'
import { defaultScopes, presets } from '../../src/lib/scopes.ts'
import type { Row } from '../program.ts'
import { useProgram } from '../use.ts'

const { operator } = useProgram()

const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const resetsAt = expect.stringMatching(/^\d{4}-\d\d-01T00:00:00\.000Z$/)
const resetsInTable = expect.stringMatching(/^\d{4}-\d\d-01 00:00$/)
const idOf = (kind: string) => expect.stringMatching(new RegExp(`^${kind}_[0-9A-Za-z]{16}$`))

/** A result as a person reads it: a line for each field, its name and its value apart. */
function readFields(text: string): Row {
  const lines = text.trimEnd().split('\n')
  return Object.fromEntries(lines.map((line) => (/^(\S+) {2,}(.+)$/.exec(line) as RegExpExecArray).slice(1)))
}

/** A table as a person reads it: the names of its columns, then a line for each row. */
const readTable = (text: string) =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/))

let org: string

beforeAll(async () => {
  ;({ id: org } = await operator.one('orgs', 'create', '--name', 'Acme', '--plan', 'team'))
})

test.concurrent('orgs create makes an organisation with the limit of its plan or its own', async () => {
  expect(await operator.one('orgs', 'create', '--name', ' Bé ', '--plan', 'free', '--monthly-limit', '0')).toEqual({
    id: idOf('org'),
    name: 'Bé',
    plan: 'free',
    monthly_limit: 0,
  })
  expect(readFields(await operator.plain('orgs', 'create', '--name', 'Plain', '--plan', 'business'))).toEqual({
    id: idOf('org'),
    name: 'Plain',
    plan: 'business',
    monthly_limit: '100000',
  })
})

test.concurrent('orgs set-plan changes the plan, and orgs list shows each with its use of the month', async () => {
  const usage = { used: 0, resets_at: resetsAt, retention_days: null, store_text: false, suspended_at: null }
  const changed = { id: org, name: 'Acme', plan: 'free', monthly_limit: 7, ...usage }
  expect(await operator.one('orgs', 'set-plan', org, 'free', '--monthly-limit', '7')).toEqual(changed)
  expect(await operator.json('orgs', 'list')).toContainEqual(changed)
  expect(await operator.one('orgs', 'set-plan', org, 'team')).toMatchObject({ plan: 'team', monthly_limit: 10_000 })
  const [columns, ...rows] = readTable(await operator.plain('orgs', 'list'))
  // A column without a value is left out.
  expect(columns?.slice(0, 6)).toEqual(['id', 'name', 'plan', 'monthly_limit', 'used', 'resets_at'])
  expect(rows.map((row) => row.slice(0, 6))).toContainEqual([org, 'Acme', 'team', '10000', '0', resetsInTable])
})

test.concurrent('keys create shows a key once; keys list and keys revoke never do', async () => {
  const create = ['keys', 'create', '--org', org]
  const made = await operator.one(
    ...[...create, '--name', 'ci', '--preset', 'ci', '--expires-at', '2126-01-01T01:00:00+01:00'],
  )
  const key = expect.stringMatching(/^psk_[0-9A-Za-z]{36}$/)
  const terms = { origins: null, prompts: null, monthly_limit: null }
  const expires = { expires_at: '2126-01-01T00:00:00.000Z' }
  expect(made).toEqual({ id: idOf('key'), key, org, name: 'ci', scopes: presets.ci, ...expires, ...terms })
  const text = await operator.plain(...create)
  expect(text).toEndWith('\nKeep the key now: it is not shown again.\n')
  const shown = readFields(text.slice(0, text.indexOf('Keep')))
  expect(shown).toMatchObject({ key, name: 'default', scopes: defaultScopes.join(), expires_at: '-' })

  const prefix = made.key.slice(0, 12)
  const live = { last_used_at: null, revoked_at: null, replaced_by: null }
  const listed = {
    id: made.id,
    name: 'ci',
    prefix,
    scopes: presets.ci,
    created_at: time,
    ...expires,
    ...live,
    ...terms,
  }
  expect(await operator.json('keys', 'list', '--org', org)).toEqual([listed, expect.objectContaining({ id: shown.id })])
  const revoked = await operator.one('keys', 'revoke', made.id)
  expect(revoked).toEqual({ ...listed, revoked_at: time })
  // Repeated, it keeps the time of the first.
  expect((await operator.one('keys', 'revoke', made.id)).revoked_at).toBe(revoked.revoked_at)
  const table = await operator.plain('keys', 'list', '--org', org)
  expect(readTable(table)[0]).toEqual(['id', 'name', 'prefix', 'scopes', 'state'])
  expect(readTable(table)).toContainEqual([made.id, 'ci', prefix, 'ci', expect.stringMatching(/^revoked \d{4}-/)])
  expect(table).not.toContain(made.key.slice(0, 13))
})

test.concurrent('keys rotate makes a key in the place of another, and audit list shows who did it', async () => {
  const { id: org } = await operator.one('orgs', 'create', '--name', 'Rotated', '--plan', 'free')
  const old = await operator.one('keys', 'create', '--org', org, '--name', 'app', '--scopes', 'signals:write')
  const made = await operator.one('keys', 'rotate', old.id, '--overlap', '30m')
  expect(made).toEqual({ ...old, id: idOf('key'), key: expect.stringMatching(/^psk_/) })
  expect(made.key).not.toBe(old.key)
  const [first] = await operator.json('keys', 'list', '--org', org)
  expect(first).toMatchObject({ id: old.id, replaced_by: made.id, expires_at: time, revoked_at: null })
  expect(await operator.one('orgs', 'suspend', org)).toMatchObject({ id: org, suspended_at: time })
  expect(await operator.one('orgs', 'resume', org)).toMatchObject({ id: org, suspended_at: null })
  const log = await operator.json('audit', 'list', '--org', org)
  expect(log.map(({ actor, action, subject }) => [actor, action, subject])).toEqual([
    ['cli', 'organisation.resumed', org],
    ['cli', 'organisation.suspended', org],
    ['cli', 'key.rotated', old.id],
    ['cli', 'key.created', old.id],
  ])
  expect(await operator.json('audit', 'list', '--org', org, '--limit', '1')).toEqual(log.slice(0, 1))
})

test.concurrent('keys create makes a key for browsers, which keys list shows and keys rotate carries over', async () => {
  const { id: org } = await operator.one('orgs', 'create', '--name', 'Browsers', '--plan', 'free')
  const { id: prompt } = await operator.one('prompts', 'create', '--org', org, '--name', 'answer')
  const create = ['keys', 'create', '--org', org, '--preset', 'browser', '--origin', 'https://example.com']
  const more = ['--origin', 'https://*.example.com', '--prompt', prompt, '--monthly-limit', '50']
  const terms = { origins: ['https://example.com', 'https://*.example.com'], prompts: [prompt], monthly_limit: 50 }
  const made = await operator.one(...create, ...more)
  expect(made).toMatchObject({ ...terms, scopes: ['signals:write'] })
  expect(await operator.one('keys', 'rotate', made.id)).toMatchObject(terms)
  expect(await operator.json('keys', 'list', '--org', org)).toMatchObject([terms, terms])
  expect(await operator.errorLine(...create, '--origin', 'https://example.com/page')).toContain(
    '--origin must be an origin',
  )
  expect(await operator.errorLine(...create, '--prompt', 'pmt_none')).toContain('--prompt must be a prompt')
})

test.concurrent('keys update changes what is given of a key, and leaves the rest', async () => {
  const { id: org } = await operator.one('orgs', 'create', '--name', 'Updated', '--plan', 'free')
  const { id: prompt } = await operator.one('prompts', 'create', '--org', org, '--name', 'answer')
  const made = await operator.one(
    ...['keys', 'create', '--org', org, '--preset', 'browser', '--origin', 'https://example.com'],
    ...['--prompt', prompt, '--monthly-limit', '50', '--expires-at', '2100-01-01T00:00:00Z'],
  )
  const update = ['keys', 'update', made.id]
  const { key: _, org: __, ...before } = made
  const renamed = { ...before, name: 'website', monthly_limit: 0 }
  expect(await operator.one(...update, '--name', 'website', '--monthly-limit', '0')).toMatchObject(renamed)
  const origins = ['https://example.com', 'https://example.org']
  const moved = { ...renamed, origins }
  expect(await operator.one(...update, ...origins.flatMap((origin) => ['--origin', origin]))).toMatchObject(moved)
  const freed = { ...moved, expires_at: null, prompts: null, monthly_limit: null }
  expect(
    await operator.one(...update, '--expires-at', 'none', '--prompt', 'all', '--monthly-limit', 'none'),
  ).toMatchObject(freed)
  expect(await operator.json('keys', 'list', '--org', org)).toMatchObject([freed])
  expect(await operator.errorLine(...update, '--preset', 'admin')).toContain('--origin must be absent unless')
  expect(await operator.json('audit', 'list', '--org', org, '--limit', '1')).toMatchObject([
    { actor: 'cli', action: 'key.updated', subject: made.id, details: { origins } },
  ])
})

test.concurrent('keys update adds and removes scopes, and leaves the others', async () => {
  const { id: org } = await operator.one('orgs', 'create', '--name', 'Scopes', '--plan', 'free')
  const { id } = await operator.one('keys', 'create', '--org', org, '--scopes', 'usage:read,signals:write')
  const update = async (...more: string[]) => (await operator.one('keys', 'update', id, ...more)).scopes
  expect(await update('--add-scope', 'history:read, usage:read')).toEqual([
    'history:read',
    'signals:write',
    'usage:read',
  ])
  expect(await update('--remove-scope', 'usage:read,signals:write', '--add-scope', 'keys:read')).toEqual([
    'history:read',
    'keys:read',
  ])
  const all = ['keys', 'update', id, '--remove-scope', 'history:read,keys:read']
  expect(await operator.errorLine(...all)).toContain('scopes must not be empty')
})

test.concurrent('prompts create makes a prompt, of the id given or a new one, and prompts list shows them', async () => {
  const { id: org } = await operator.one('orgs', 'create', '--name', 'Prompts', '--plan', 'free')
  const file = { repository: null, path: null, file_state: null, file_moved_to: null }
  const unlinked = { ...file, live_branch: null, archived: false, last_entry_at: null }
  const given = { id: 'pmt_My-own_1', org, name: 'Greeting', ...unlinked, created_at: time }
  const asked = ['prompts', 'create', '--org', org, '--name', 'Greeting']
  expect(await operator.one(...asked, '--id', given.id)).toEqual(given)
  const other = await operator.one(...asked)
  expect(other).toEqual({ ...given, id: idOf('pmt') })
  expect(await operator.json('prompts', 'list', '--org', org)).toEqual([given, other])
  const [columns] = readTable(await operator.plain('prompts', 'list', '--org', org))
  expect(columns).toEqual(['id', 'name', 'archived'])
  expect(await operator.one('prompts', 'archive', given.id)).toEqual({ ...given, archived: true })
  expect(await operator.json('prompts', 'list', '--org', org)).toEqual([other])
  const archived = await operator.json('prompts', 'list', '--org', org, '--archived', 'true')
  expect(archived).toEqual([{ ...given, archived: true }])
  expect(await operator.one('prompts', 'unarchive', given.id)).toEqual(given)
})

test.concurrent('history record adds an entry, and history list shows it as the API does', async () => {
  const { id: prompt } = await operator.one('prompts', 'create', '--org', org, '--name', 'Recorded')
  const user = { name: 'Ada', email: 'ada@example.com' }
  const recorded = await operator.one(
    ...['history', 'record', '--prompt', prompt, '--user-name', user.name, '--user-email', user.email],
    ...['--commit-sha', 'c0ffee12', '--branch', 'main', '--created-at', '2026-11-14T23:35:00+02:00'],
    ...['--action', 'pr_merged', '--pr-number', '7', '--pr-url', 'https://example.com/7', '--title', 'Warmer'],
  )
  const pull = { pr_number: 7, pr_url: 'https://example.com/7' }
  const commit = { commit_sha: 'c0ffee12', branch_name: 'main', created_at: '2026-11-14T21:35:00.000Z' }
  expect(recorded).toEqual({ id: expect.any(Number), action: 'pr_merged', user, ...pull, ...commit, title: 'Warmer' })
  expect(await operator.json('history', 'list', '--prompt', prompt)).toEqual([recorded])
  const texts = { base: null, before: null, after: null, diff: null }
  expect(await operator.one('history', 'show', `${recorded.id}`, '--diff')).toEqual({ entry: recorded, ...texts })
  expect(readTable(await operator.plain('history', 'list', '--prompt', prompt))).toEqual([
    ['id', 'action', 'user', 'commit_sha', 'pr_number', 'branch_name', 'created_at', 'title'],
    [`${recorded.id}`, 'pr_merged', 'Ada <ada@example.com>', 'c0ffee12', '7', 'main', '2026-11-14 21:35', 'Warmer'],
  ])
})

test.concurrent('migrate finds nothing left to do', async () => {
  const version = expect.any(Number)
  expect(await operator.one('migrate')).toEqual({ applied: [], version })
  expect(readFields(await operator.plain('migrate')).applied).toBe('-')
})
