// What every command does and shows, beside a running server.
import { beforeAll, expect, test } from 'bun:test'
import { defaultScopes, presets } from '../../src/keys/schema.ts'
import type { Row } from '../program.ts'
import { useProgram } from '../use.ts'

const { operator } = useProgram()

const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const resetsAt = expect.stringMatching(/^\d{4}-\d\d-01T00:00:00\.000Z$/)
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
  const changed = {
    id: org,
    name: 'Acme',
    plan: 'free',
    monthly_limit: 7,
    used: 0,
    resets_at: resetsAt,
    retention_days: null,
    suspended_at: null,
  }
  expect(await operator.one('orgs', 'set-plan', org, 'free', '--monthly-limit', '7')).toEqual(changed)
  expect(await operator.json('orgs', 'list')).toContainEqual(changed)
  const back = readFields(await operator.plain('orgs', 'set-plan', org, 'team'))
  expect(back).toEqual({
    ...changed,
    plan: 'team',
    monthly_limit: '10000',
    used: '0',
    retention_days: '-',
    suspended_at: '-',
  })
  const [columns, ...rows] = readTable(await operator.plain('orgs', 'list'))
  expect(columns).toEqual([
    'id',
    'name',
    'plan',
    'monthly_limit',
    'used',
    'resets_at',
    'retention_days',
    'suspended_at',
  ])
  expect(rows).toContainEqual([org, 'Acme', 'team', '10000', '0', resetsAt, '-', '-'])
})

test.concurrent('keys create shows a key once; keys list and keys revoke never do', async () => {
  const expiresAt = '2126-01-01T00:00:00.000Z'
  const made = await operator.one(
    'keys',
    'create',
    '--org',
    org,
    '--name',
    'ci',
    '--expires-at',
    '2126-01-01T01:00:00+01:00',
    '--preset',
    'ci',
  )
  const key = expect.stringMatching(/^psk_[0-9A-Za-z]{36}$/)
  const noTerms = { origins: null, prompts: null, monthly_limit: null }
  const expires = { expires_at: expiresAt }
  expect(made).toEqual({ id: idOf('key'), key, org, name: 'ci', scopes: presets.ci, ...expires, ...noTerms })
  const text = await operator.plain('keys', 'create', '--org', org)
  const [fields, remark] = [text.split('\n').slice(0, -2).join('\n'), text.split('\n').at(-2)]
  expect(readFields(fields)).toEqual({
    id: idOf('key'),
    key,
    org,
    name: 'default',
    scopes: defaultScopes.join(),
    expires_at: '-',
    origins: '-',
    prompts: '-',
    monthly_limit: '-',
  })
  expect(remark).toBe('Keep the key now: it is not shown again.')

  const shown = { id: made.id, name: 'ci', prefix: made.key.slice(0, 12), scopes: presets.ci, created_at: time }
  const live = { ...shown, expires_at: expiresAt, last_used_at: null, revoked_at: null, replaced_by: null, ...noTerms }
  const [listed, ...others] = await operator.json('keys', 'list', '--org', org)
  expect(listed).toEqual(live)
  expect(others).toHaveLength(1)
  const revoked = await operator.one('keys', 'revoke', made.id)
  expect(revoked).toEqual({ ...live, revoked_at: time })
  // Repeated, it keeps the time of the first.
  expect(readFields(await operator.plain('keys', 'revoke', made.id)).revoked_at).toBe(revoked.revoked_at)

  const table = await operator.plain('keys', 'list', '--org', org)
  const columns = 'id name prefix scopes created_at expires_at last_used_at revoked_at replaced_by'.split(' ')
  const terms = ['origins', 'prompts', 'monthly_limit']
  expect(readTable(table).slice(0, 2)).toEqual([
    [...columns, ...terms],
    [made.id, 'ci', shown.prefix, shown.scopes?.join(), time, expiresAt, '-', revoked.revoked_at, '-', '-', '-', '-'],
  ])
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
  const terms = {
    origins: ['https://example.com', 'https://*.example.com'],
    prompts: [prompt],
    monthly_limit: 50,
  }
  const made = await operator.one(...create, ...more)
  expect(made).toMatchObject({ ...terms, scopes: ['signals:write'] })
  expect(await operator.one('keys', 'rotate', made.id)).toMatchObject(terms)
  expect(await operator.json('keys', 'list', '--org', org)).toMatchObject([terms, terms])
  const [, first] = readTable(await operator.plain('keys', 'list', '--org', org))
  expect(first?.slice(-3)).toEqual([terms.origins.join(), prompt, '50'])
  expect(await operator.errorLine(...create, '--origin', 'https://example.com/page')).toContain(
    '/origins/1 must be an origin',
  )
  expect(await operator.errorLine(...create, '--prompt', 'pmt_none')).toContain('/prompts/0 must be a prompt')
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
  expect(await operator.errorLine(...update, '--preset', 'admin')).toContain('/origins must be absent unless')
  expect(await operator.json('audit', 'list', '--org', org, '--limit', '1')).toMatchObject([
    { actor: 'cli', action: 'key.updated', subject: made.id, details: { origins } },
  ])
})

test.concurrent('prompts create makes a prompt, of the id given or a new one, and prompts list shows them', async () => {
  const { id: org } = await operator.one('orgs', 'create', '--name', 'Prompts', '--plan', 'free')
  const unlinked = { repository: null, path: null, file_state: null, file_moved_to: null, last_entry_at: null }
  const given = { id: 'pmt_My-own_1', org, name: 'Greeting', ...unlinked, created_at: time }
  const asked = ['prompts', 'create', '--org', org, '--name', 'Greeting']
  expect(await operator.one(...asked, '--id', given.id)).toEqual(given)
  const other = readFields(await operator.plain(...asked))
  expect(other).toEqual({
    ...given,
    id: idOf('pmt'),
    ...Object.fromEntries(Object.keys(unlinked).map((field) => [field, '-'])),
  })
  expect(await operator.json('prompts', 'list', '--org', org)).toEqual([given, { ...given, id: other.id }])
  expect(readTable(await operator.plain('prompts', 'list', '--org', org))).toEqual([
    ['id', 'org', 'name', ...Object.keys(unlinked), 'created_at'],
    [given.id, org, 'Greeting', '-', '-', '-', '-', '-', time],
    [other.id, org, 'Greeting', '-', '-', '-', '-', '-', time],
  ])
})

test.concurrent('history record adds an entry and shows it as the API does', async () => {
  const { id: prompt } = await operator.one('prompts', 'create', '--org', org, '--name', 'Recorded')
  const asked = [
    ...['history', 'record', '--prompt', prompt, '--user-name', 'Ada', '--user-email', 'ada@example.com'],
    ...['--commit-sha', 'c0ffee12', '--branch', 'main'],
  ]
  const user = { name: 'Ada', email: 'ada@example.com' }
  const common = { id: expect.any(Number), user, commit_sha: 'c0ffee12', branch_name: 'main' }
  const merged = ['--action', 'pr_merged', '--pr-number', '7', '--pr-url', 'https://example.com/7']
  expect(await operator.one(...asked, ...merged, '--created-at', '2026-11-14T23:35:00+02:00')).toEqual({
    ...common,
    action: 'pr_merged',
    pr_number: 7,
    pr_url: 'https://example.com/7',
    created_at: '2026-11-14T21:35:00.000Z',
  })
  expect(readFields(await operator.plain(...asked, '--action', 'deployed'))).toEqual({
    ...common,
    id: expect.stringMatching(/^\d+$/),
    user: 'Ada <ada@example.com>',
    action: 'deployed',
    pr_number: '-',
    pr_url: '-',
    created_at: time,
  })
  const [columns, ...listed] = readTable(await operator.plain('history', 'list', '--prompt', prompt))
  expect(columns).toEqual(['id', 'action', 'user', 'commit_sha', 'pr_number', 'branch_name', 'created_at'])
  expect(listed.map(([, action, user]) => [action, user])).toEqual([
    ['deployed', 'Ada <ada@example.com>'],
    ['pr_merged', 'Ada <ada@example.com>'],
  ])
  expect((await operator.json('history', 'list', '--prompt', prompt)).map((entry) => entry.user)).toEqual([user, user])
})

test.concurrent('migrate finds nothing left to do', async () => {
  const version = expect.any(Number)
  expect(await operator.one('migrate')).toEqual({ applied: [], version })
  expect(readFields(await operator.plain('migrate')).applied).toBe('-')
})

test('concurrent commands each make their own change', async () => {
  const names = Array.from({ length: 6 }, (_, index) => `concurrent ${index}`)
  const made = await Promise.all(names.map((name) => operator.one('prompts', 'create', '--org', org, '--name', name)))
  expect(made.map(({ name }) => name)).toEqual(names)
  const listed = (await operator.json('prompts', 'list', '--org', org)).filter(({ name }) => names.includes(name))
  expect(listed.map(({ id }) => id).sort()).toEqual(made.map(({ id }) => id).sort())
})
