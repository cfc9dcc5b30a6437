import { expect, test } from 'bun:test'
import { useProgram } from '../use.ts'

const { client, operator, tenant } = useProgram()

const badName = 'The name is not valid. --name must have 1 to 200 characters, none of them a control character'

test.concurrent.each([
  ['an unknown organisation', ['keys', 'create', '--org', 'org_none'], 'There is no organisation org_none.'],
  [
    'an unknown organisation',
    ['prompts', 'list', '--org', ''],
    'There is no organisation . "prompt-signals orgs list" lists them.',
  ],
  [
    'an id that would steer the terminal',
    ['keys', 'list', '--org', 'org_a\nb\r\u001b[31m\u202e!'],
    'There is no organisation org_a b [31m !.',
  ],
  ['an unknown key', ['keys', 'revoke', 'key_none'], 'There is no key key_none.'],
  ['a name with an escape', ['orgs', 'create', '--name', '\u001b[31mred', '--plan', 'free'], badName],
  ['a name with a C1 control', ['orgs', 'create', '--name', 'a\u009b31m', '--plan', 'free'], badName],
])('rejects %s: %j', async (_, args, line) => {
  expect(await operator.errorLine(...args)).toBe(line)
})

test.concurrent('rejects names, ids and times that do not fit the organisation’s things', async () => {
  const { org } = tenant
  const key = ['keys', 'create', '--org', org]
  const prompt = ['prompts', 'create', '--org', org, '--name', 'A']
  expect(await operator.errorLine(...key, '--name', 'a\nb')).toBe(badName)
  expect(await operator.errorLine(...key, '--expires-at', '2020-01-01T00:00:00Z')).toBe(
    'The key would have expired already. --expires-at must be later than now',
  )
  expect(await operator.errorLine(...prompt.slice(0, -1), 'a\tb')).toBe(badName)
  for (const id of ['greeting', 'pmt_', 'pmt_a b', 'pmt_é', `pmt_${'x'.repeat(65)}`]) {
    expect(await operator.errorLine(...prompt, '--id', id)).toBe(
      'The id is not valid. --id must be pmt_ and 1 to 64 letters, digits, "_" or "-"',
    )
  }
  expect(await operator.errorLine(...prompt, '--id', tenant.prompt)).toBe(
    `The id ${tenant.prompt} is taken. --id must be one that is free`,
  )
  expect(await operator.json('prompts', 'list', '--org', org)).toHaveLength(1)
  expect(await operator.json('keys', 'list', '--org', org)).toHaveLength(1)
})

const given = {
  prompt: '',
  action: 'deployed',
  'user-name': 'Ada',
  'user-email': 'ada@example.com',
  'commit-sha': 'c0ffee12',
  branch: 'main',
}

test.concurrent.each([
  [{ prompt: 'pmt_none' }, 'There is no prompt pmt_none.'],
  [{ action: 'pr_opened' }, /--pr-number must be given, with --pr-url, when the action is pr_opened$/],
  [{ action: 'pr_closed', 'pr-number': '3', 'pr-url': 'javascript:alert(1)' }, /--pr-url must be an http or https /],
  [{ branch: 'a\nb' }, /--branch contains characters that are not allowed/],
])('history record rejects %j', async (wrong: object, line) => {
  const options = Object.entries({ ...given, prompt: tenant.prompt, ...wrong }).map(
    ([name, text]) => `--${name}=${text}`,
  )
  expect(await operator.errorLine('history', 'record', ...options)).toMatch(line)
})

test('has left nothing behind', async () => {
  expect((await operator.json('orgs', 'list')).map(({ name }) => name)).toEqual(['Test'])
  expect((await client.getHistory(tenant.prompt, tenant.key)).body.data).toEqual([])
})
