// TLS to Postgres and Redis: the server's certificate and name are verified, unless the URL says otherwise.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, chownSync, copyFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openClient } from '../../src/db/client.ts'
import { parseTls } from '../../src/db/tls.ts'
import { createCertificate } from '../certificate.ts'
import { createFolder, errorLineOf, eventually, run, startServer } from '../program.ts'
import { findOrInstall, postgresProgram, redisProgram } from '../programs.ts'
import { sentinelRecipe } from '../redis_servers.ts'
import { postgresRecipe, redisRecipe, withRedis } from '../services.ts'
import { type Recipe, type Server, startThrowaway } from '../throwaway.ts'
import { useDatabase } from '../use.ts'

const folder = createFolder()
const authority = join(folder, 'ca.pem')
const servers: Server[] = []
const database = useDatabase()
let postgresPort: string
/** Where each kind of Redis is reached. */
const redisHosts: Record<string, (host: string) => string> = {}

/** Copies the files to where the server's user can read them, and no other user can read the key. */
function installFor(target: string, name: string): string {
  const path = join(target, name)
  copyFileSync(join(folder, name), path)
  const { uid, gid } = statSync(target)
  chownSync(path, uid, gid)
  chmodSync(path, 0o600)
  return path
}

async function start(
  plain: (target: string) => Recipe,
  tls: (certificate: string, key: string, ca: string, port: number) => string[],
) {
  const server = await startThrowaway((target) => {
    const recipe = plain(target)
    const install = (name: string) => installFor(target, name)
    const more = (port: number) => tls(install('server.pem'), install('server.key'), install('ca.pem'), port)
    return { ...recipe, command: (port) => [...recipe.command(port), ...more(port)] }
  })
  servers.push(server)
  return new URL(server.url)
}

beforeAll(async () => {
  createCertificate(folder, 'ca')
  // Not for 127.0.0.1, where the servers are reached too.
  const signer = ['-CA', authority, '-CAkey', join(folder, 'ca.key')]
  createCertificate(folder, 'server', ...signer, '-addext', 'subjectAltName=DNS:localhost')
  const [postgresFolder = '', redisPath = ''] = await findOrInstall([postgresProgram, redisProgram])
  const postgres = await start(
    (target) => postgresRecipe(postgresFolder, target),
    (certificate, key) =>
      ['ssl=on', `ssl_cert_file=${certificate}`, `ssl_key_file=${key}`].flatMap((setting) => ['-c', setting]),
  )
  postgresPort = postgres.port
  const startRedis = async (settings: string[] = [], recipe = redisRecipe) => {
    const { href, port } = await start(
      (target) => recipe(redisPath, target),
      // Beside the port without TLS, so that an attempt on another port has another for TLS too.
      (certificate, key, ca, plainPort) => [
        ...['--tls-port', `${plainPort + 1}`, '--tls-ca-cert-file', ca, '--tls-cert-file', certificate],
        ...['--tls-key-file', key, '--tls-auth-clients', 'no', ...settings],
      ],
    )
    return { port: Number(port) + 1, url: href }
  }
  const single = await startRedis()
  redisHosts.rediss = (host) => `${host}:${single.port}`

  // Certificates are for names, so the servers must announce themselves by theirs.
  const cluster = await startRedis([
    ...['--cluster-enabled', 'yes', '--tls-cluster', 'yes', '--cluster-announce-hostname', 'localhost'],
    ...['--cluster-preferred-endpoint-type', 'hostname'],
  ])
  await withRedis(cluster.url, (client) => client.cluster('ADDSLOTSRANGE', 0, 16_383))
  redisHosts['rediss+cluster'] = (host) => `localhost:1,${host}:${cluster.port}`

  const names = ['resolve-hostnames yes', 'announce-hostnames yes', `monitor main localhost ${single.port} 1`]
  const sentinel = await startRedis(['--tls-replication', 'yes'], (...of) => sentinelRecipe(...of, names))
  redisHosts['rediss+sentinel'] = (host) => `localhost:1,${host}:${sentinel.port}/main`
})

afterAll(async () => {
  await Promise.all(servers.map(({ stop }) => stop()))
})

const postgresUrl = (host: string, query: string) =>
  `postgres://postgres@${host}:${postgresPort}/postgres?${query.replace('CA', authority)}`

test.each([
  ['localhost', 'sslmode=require&sslrootcert=CA', true],
  ['localhost', 'sslmode=verify-ca&sslrootcert=CA', true],
  ['localhost', 'sslmode=verify-full&sslrootcert=CA', true],
  ['localhost', 'sslrootcert=CA', true],
  ['127.0.0.1', 'sslmode=no-verify', true],
  ['127.0.0.1', 'sslmode=disable', false],
  ['127.0.0.1', '', false],
])('Postgres at %s with "%s" is used, encrypted: %p', async (host, query, isEncrypted) => {
  const url = postgresUrl(host, query)
  expect((await run(['migrate'], { settings: { DATABASE_URL: url } })).status).toBe(0)
  const db = openClient(parseTls(url), { queryTimeoutMs: 5_000, maxConnections: 1 })
  expect(await db.sql`select ssl from pg_stat_ssl where pid = pg_backend_pid()`).toEqual([{ ssl: isEncrypted }])
  await db.close()
})

test.each([
  ['localhost', 'sslmode=require', /unable to verify/],
  ['localhost', 'sslmode=verify-full', /unable to verify/],
  ['127.0.0.1', 'sslmode=require&sslrootcert=CA', /does not match certificate/],
  ['127.0.0.1', 'sslmode=verify-full&sslrootcert=CA', /does not match certificate/],
])('Postgres at %s with "%s" is rejected', async (host, query, reason) => {
  const line = errorLineOf(await run(['migrate'], { settings: { DATABASE_URL: postgresUrl(host, query) } }))
  expect(line).toStartWith(`The database at ${host}:${postgresPort} cannot be used: `)
  expect(line).toMatch(reason)
})

test('of several Postgres hosts, those that cannot be verified are not used', async () => {
  const migrateOn = (...hosts: string[]) => {
    const DATABASE_URL = `postgres://postgres@${hosts}/postgres?sslmode=verify-full&sslrootcert=${authority}`
    return run(['migrate'], { settings: { DATABASE_URL } })
  }
  const [trusted, other, away] = [`localhost:${postgresPort}`, `127.0.0.1:${postgresPort}`, 'localhost:1']
  expect((await migrateOn(away, other, trusted)).status).toBe(0)
  expect(errorLineOf(await migrateOn(away, other))).toMatch(/does not match certificate/)
})

test.each([
  ['a name', '2130706433', '', true],
  ['a name', '2130706433', '?sslmode=no-verify', false],
  ['the loopback', '127.0.0.1', '', false],
  ['the loopback', 'localhost', '', false],
])(
  'a service on Postgres at %s (%s) with "%s" warns that the connection is not encrypted: %p',
  async (_, host, query, isWarned) => {
    const DATABASE_URL = `postgres://postgres@${host}:${postgresPort}/postgres${query}`
    expect((await run(['migrate'], { settings: { DATABASE_URL } })).status).toBe(0)
    const server = await startServer({ DATABASE_URL })
    expect(await server.stop()).toBe(0)
    expect(server.stdout().includes('"msg":"connection to the database is not encrypted')).toBe(isWarned)
  },
)

test.each([
  ['rediss', 'localhost', true, 'up'],
  ['rediss', 'localhost', false, 'down'],
  ['rediss', '127.0.0.1', true, 'down'],
  ['rediss+cluster', 'localhost', true, 'up'],
  ['rediss+sentinel', 'localhost', true, 'up'],
])('%s at %s, its authority known: %p, is %s', async (scheme, host, isKnown, state) => {
  const server = await startServer({
    ...database.settings,
    REDIS_URL: `${scheme}://${redisHosts[scheme]?.(host)}`,
    REDIS_CA_FILE: isKnown ? authority : undefined,
  })
  const last = () => server.log().findLast(({ dependency }) => dependency === 'redis')
  // A server of a cluster or a sentinel may be tried before one that serves.
  await eventually(() => last()?.msg, `dependency ${state}`)
  if (state === 'down')
    expect(last()?.reason).toMatch(/unable to verify|self.signed certificate|does not match certificate/)
  expect(await server.stop()).toBe(0)
})
