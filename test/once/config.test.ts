import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readConfig, settings } from '../../src/config.ts'
import { createFolder, errorLineOf, run } from '../program.ts'

const folder = createFolder()

const show = async (given: Record<string, string>) => {
  const { status, stdout, stderr } = await run(['config', '--json'], { settings: { PORT: undefined, ...given } })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  expect(stdout).not.toContain('hunter2')
  return JSON.parse(stdout)
}

test.concurrent('shows the default of every setting, and nothing for what is unset', async () => {
  const expected = Object.entries(settings).map(([name, { fallback }]) => [name, fallback ?? null])
  expect(await show({})).toEqual(Object.fromEntries(expected))
})

test.concurrent('shows what is set, without passwords, also when they come from a file', async () => {
  expect(await show({ REDIS_URL: 'rediss+sentinel://:hunter2@h1:26379,[::1]/main' })).toMatchObject({
    REDIS_URL: 'rediss+sentinel://:***@h1:26379,[::1]/main',
  })
  const file = join(folder, 'redis-url')
  writeFileSync(file, 'rediss://user:hunter2@redis.example:6380/1\n')
  const shown = await show({
    DATABASE_URL: 'postgres://user:hunter2@db.example/name?sslmode=verify-full&password=hunter2',
    REDIS_URL_FILE: file,
    METRICS_ADDRESS: '[::1]:9090',
    PORT: '8080',
  })
  expect(shown).toMatchObject({
    DATABASE_URL: 'postgres://user:***@db.example/name?sslmode=verify-full&password=***',
    REDIS_URL: 'rediss://user:***@redis.example:6380/1',
    METRICS_ADDRESS: '[::1]:9090',
    PORT: '8080',
  })
})

test.concurrent('a person reads one setting on a line', async () => {
  const { stdout } = await run(['config'], { settings: { PORT: '8080' } })
  expect(stdout).toMatch(/^PORT +8080$/m)
  expect(stdout).toMatch(/^DATABASE_URL +-$/m)
  expect(stdout.trim().split('\n')).toHaveLength(Object.keys(settings).length)
})

const emptyFile = join(folder, 'empty')
writeFileSync(emptyFile, '\n')
const nothing = join(folder, 'nothing')
writeFileSync(nothing, '')

test.each(
  Object.keys(settings).flatMap((name) => [name, ...(settings[name as 'PORT'].secret ? [`${name}_FILE`] : [])]),
)('an empty %s is rejected, because unset would mean something else', (name) => {
  expect(() => readConfig({}, { [name]: '' })).toThrow(`${name} is empty: give it a value or unset it`)
})

type Rejected = [Record<string, string>, string]

const reject = (name = '', expected = '', ...values: string[]): Rejected[] =>
  values.map((value) => [{ [name]: value }, `${name} must be ${expected}, not "${value}"`])

const secretFile = join(folder, 'secret')
writeFileSync(secretFile, 'mysql://user:hunter2@h/db\n')
const notPostgres = 'DATABASE_URL must be a URL that begins with postgres:// or postgresql://'

test.each([
  ...reject('PORT', 'a port number from 0 to 65535', 'abc', '-1'),
  ...reject('LOG_LEVEL', 'one of fatal, error, warn, info, debug, trace, silent', 'loud'),
  [{ DATABASE_URL: 'mysql://user:hunter2@h/db' }, notPostgres],
  [{ DATABASE_URL: 'hunter2' }, notPostgres],
  [{ DATABASE_URL_FILE: secretFile }, notPostgres],
  [
    { DATABASE_URL: 'postgres://user:hunter2%@h/db' },
    'DATABASE_URL must have every "%" in its user, password and name escaped as %25',
  ],
  [
    { REDIS_URL: 'http://:hunter2@h' },
    'REDIS_URL must be a URL that begins with redis:// or rediss:// or redis+sentinel:// or rediss+sentinel:// or redis+cluster:// or rediss+cluster://',
  ],
  ...[
    ['redis://:hunter2@h1/main', 'must end with the number of a database'],
    ['redis://:hunter2@h1:1,h2:2', 'names several hosts: use redis+sentinel:// or redis+cluster://'],
    [
      'redis+sentinel://:hunter2@h1:26379,h2:26379',
      'must end with the name of the master: redis+sentinel://h1:26379,h2:26379/NAME',
    ],
    ['redis+cluster://:hunter2@h1,h2:6379/1', 'must end after its hosts: a Redis Cluster has no numbered databases'],
    ['redis+cluster://:hunter2@h1?family=6', 'may have no parameters with redis+cluster://'],
    ...['redis:///1', 'redis+cluster://', 'redis+cluster://:hunter2@h1,,h2', 'redis+sentinel://:hunter2@h1:x/main'].map(
      (url) => [url, 'must name hosts as host:port, separated by commas; escape "/", "?" and "#" in a password'],
    ),
  ].map(([url, problem]): Rejected => [{ REDIS_URL: url as string }, `REDIS_URL ${problem}`]),
  [
    { REDIS_URL: 'redis+cluster://:hunter2@h1', REDIS_PREFIX: '{a}' },
    'REDIS_PREFIX must have no "{" with a Redis Cluster',
  ],
  [{ REDIS_URL: 'redis://:hunter2@h', REDIS_URL_FILE: secretFile }, 'Set REDIS_URL or REDIS_URL_FILE, not both'],
  ...reject('DRAIN_SECONDS', 'a whole number of seconds from 0 to 3600', '-1', '1.5', '3601'),
  ...reject('METRICS_ADDRESS', 'a host and a port, such as 127.0.0.1:9090', '9090', '::1:9090', 'h:65536'),
  [{ REUSE_PORT: 'on' }, 'REUSE_PORT=on needs DATABASE_URL: only one process can use the embedded database'],
  [
    { REUSE_PORT: 'on', DATABASE_URL: 'postgres://u:hunter2@h/d' },
    'REUSE_PORT=on needs METRICS_ADDRESS, another one for each process',
  ],
  [{ DATABASE_URL_FILE: '/proc/none' }, 'DATABASE_URL_FILE names a file that cannot be read: /proc/none'],
  [{ DATABASE_URL_FILE: '/proc' }, 'DATABASE_URL_FILE names a folder, not a file: /proc'],
  [{ DATABASE_URL_FILE: '/dev/null' }, 'DATABASE_URL_FILE names an empty file: /dev/null'],
  [{ DATABASE_URL_FILE: emptyFile }, `DATABASE_URL_FILE names an empty file: ${emptyFile}`],
  [{ REDIS_URL_FILE: nothing }, `REDIS_URL_FILE names an empty file: ${nothing}`],
  [{ REDIS_CA_FILE: nothing }, `REDIS_CA_FILE names an empty file: ${nothing}`],
  ...[
    'example.com',
    'ftp://example.com',
    'https://a:b@example.com',
    'https://example.com/?a=b',
    'https://example.com/#a',
  ].map(
    (url): Rejected => [
      { PUBLIC_URL: url },
      'PUBLIC_URL must be a URL that begins with http:// or https://, with no user, query or fragment',
    ],
  ),
  ...reject(
    ...['TRUSTED_PROXIES', 'addresses and networks, such as 127.0.0.1, 10.0.0.0/8'],
    ...['10.0.0.0/33', '::1/129', '10.0.0.0/8,', 'nginx', '10.0.0', 'fe80::1%eth0', '10.0.0.1 10.0.0.2'],
  ),
  ...reject(
    ...['RATE_LIMIT_PER_KEY', 'a number of requests per second, minute or hour, such as 600/min'],
    ...['0/s', '600', '600/m', '-1/s', '1.5/min', '1000000001/h'],
  ),
  [{ REDIS_CA_FILE: '/proc/none' }, 'REDIS_CA_FILE names a file that cannot be read: /proc/none'],
  ...['sslmode=prefer', 'ssl=true'].map(
    (query): Rejected => [
      { DATABASE_URL: `postgres://u:hunter2@h/d?${query}` },
      'DATABASE_URL may set TLS only with sslmode=, one of disable, require, verify-ca, verify-full, no-verify',
    ],
  ),
  [
    { DATABASE_URL: 'postgres://u:hunter2@h/d?sslrootcert=/proc/none' },
    'DATABASE_URL names as sslrootcert a file that cannot be read: /proc/none',
  ],
])('the settings %j are rejected with one line and no secret', (given, line) => {
  expect(() => readConfig({}, given)).toThrow(new Error(line))
  expect(line).not.toContain('hunter2')
})

test.concurrent.each(['serve', 'config', 'orgs list'])('a wrong setting stops %s with one line', async (command) => {
  const finished = await run(command.split(' '), { settings: { DATABASE_URL: 'mysql://user:hunter2@h/db' } })
  expect(errorLineOf(finished)).toBe(notPostgres)
})
