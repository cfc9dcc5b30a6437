// The service with a certificate of its own, and the change of it without a restart.
import { afterAll, beforeAll, expect, spyOn, test } from 'bun:test'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { type Listener, listen } from '../../src/platform.ts'
import { createDatabase, type TestDatabase } from '../harness.ts'
import { createFolder, errorLineOf, eventually, run, type Server, startServer } from '../program.ts'

const folder = createFolder()
const inFolder = (name: string) => join(folder, name)
const files = { TLS_CERT_FILE: inFolder('server.pem'), TLS_KEY_FILE: inFolder('server.key') }
let database: TestDatabase

function makeCertificate(name: string): void {
  const key = [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    inFolder(`${name}.key`),
  ]
  const args = ['req', '-x509', ...key, '-days', '2', '-subj', `/CN=${name}`, '-out', inFolder(`${name}.pem`)]
  const { success, stderr } = Bun.spawnSync(['openssl', ...args])
  if (!success) throw new Error(`openssl, which this test needs, failed: ${stderr}`)
}

function install(name: string): void {
  copyFileSync(inFolder(`${name}.pem`), files.TLS_CERT_FILE)
  copyFileSync(inFolder(`${name}.key`), files.TLS_KEY_FILE)
}

beforeAll(async () => {
  makeCertificate('first')
  makeCertificate('second')
  database = await createDatabase()
})

afterAll(() => database.close())

const open = ({ url }: Server): Promise<TLSSocket> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => resolve(socket))
    socket.once('error', reject)
  })

const ask = (socket: TLSSocket): Promise<string> =>
  new Promise((resolve, reject) => {
    let answer = ''
    const read = (chunk: Buffer) => {
      answer += chunk
      if (answer.includes('"alive"}')) resolve(answer)
    }
    socket.on('data', read)
    socket.once('close', () => reject(new Error(`closed after "${answer}"`)))
    socket.write('GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n')
  })

const nameOf = (socket: TLSSocket) => socket.getPeerCertificate().subject.CN

/** Whose certificate a new connection gets. */
async function nameNow(server: Server): Promise<string | string[] | undefined> {
  const socket = await open(server)
  const name = nameOf(socket)
  socket.destroy()
  return name
}

test('SIGHUP changes the certificate for new connections, and those that are open go on', async () => {
  install('first')
  const server = await startServer({ ...database.settings, ...files })
  expect(server.url).toStartWith('https://127.0.0.1:')
  const settings = { ...database.settings, ...files, PORT: new URL(server.url).port }
  expect((await run(['healthcheck', '--json'], { settings })).stdout).toBe('{"ready":true}\n')
  const [used, unused] = await Promise.all([open(server), open(server)])
  expect([nameOf(used), await ask(used)]).toEqual(['first', expect.stringContaining('HTTP/1.1 200 OK')])

  install('second')
  process.kill(server.pid, 'SIGHUP')
  await eventually(() => server.stdout().includes('"msg":"the certificate was reloaded"'), true)
  // Until the old listener has ended, the kernel gives it some of the new connections.
  await eventually(() => nameNow(server), 'second')
  // The answer says that the connection ends with it, so that the caller takes a new one.
  for (const socket of [used, unused]) expect((await ask(socket)).toLowerCase()).toContain('connection: close')

  writeFileSync(files.TLS_KEY_FILE, 'broken')
  process.kill(server.pid, 'SIGHUP')
  await eventually(() => server.stdout().includes('"msg":"the certificate was not reloaded'), true)
  expect(server.stdout()).toContain(`"reason":"TLS_KEY_FILE cannot be used: ${files.TLS_KEY_FILE}"`)
  await eventually(() => nameNow(server), 'second')
  expect(await server.stop()).toBe(0)
})

test('SIGHUP does not end a service that is still starting', async () => {
  install('first')
  const asked = Promise.withResolvers<Bun.Socket>()
  const silent = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { open: asked.resolve, data() {} } })
  const settings = { ...files, PORT: '0', DATABASE_URL: `postgres://nobody@127.0.0.1:${silent.port}/none` }
  const child = Bun.spawn([join(import.meta.dir, '../../dist/prompt-signals'), 'serve'], {
    cwd: folder,
    env: { PATH: process.env.PATH, ...settings },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  const connection = await asked.promise
  child.kill('SIGHUP')
  // It goes on until it learns that it has no database, and ends for that reason.
  connection.terminate()
  silent.stop(true)
  await child.exited
  expect([child.exitCode, child.signalCode]).toEqual([1, null])
})

test('a port that is taken is rejected, also by another server with a certificate', async () => {
  install('first')
  const server = await startServer({ ...database.settings, ...files })
  const other = await createDatabase()
  const { port } = new URL(server.url)
  const line = errorLineOf(await run(['serve', '--port', port], { settings: { ...other.settings, ...files } }))
  expect(line).toStartWith(`Cannot listen on 127.0.0.1 port ${port}: `)
  expect(await server.stop()).toBe(0)
  await other.close()
})

test('of servers with a certificate that start in the same instant, one gets the port', async () => {
  const free = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  free.stop(true)
  const certificate = {
    cert: readFileSync(inFolder('first.pem'), 'utf8'),
    key: readFileSync(inFolder('first.key'), 'utf8'),
  }
  const app = { routes: [], fetch: () => new Response('alive') }
  const start = (): Listener => listen(app, () => new Response(), '127.0.0.1', free.port, certificate)
  const started: Listener[] = []
  const rejected: string[] = []
  // The second begins when the first has found the port free, and does not serve yet.
  const serve = Bun.serve
  const spy = spyOn(Bun, 'serve').mockImplementationOnce(((options: Parameters<typeof serve>[0]) => {
    const trial = serve(options)
    const stop = () => {
      trial.stop(true)
      spy.mockRestore()
      try {
        started.push(start())
      } catch (error) {
        rejected.push((error as Error).message)
      }
    }
    return { stop }
  }) as typeof serve)
  started.push(start())
  expect(started).toHaveLength(1)
  expect(rejected).toEqual([`Failed to start server. Is port ${free.port} in use?`])
  await started[0]?.stop()
  expect(() => started[0]?.replaceCertificate(certificate)).toThrow('the service is stopping')
  // What has stopped leaves the port to others.
  await start().stop()
})

test.each([
  [{ TLS_KEY_FILE: undefined }, 'Set both TLS_CERT_FILE and TLS_KEY_FILE, or neither'],
  [{ TLS_KEY_FILE: inFolder('second.key') }, 'TLS_KEY_FILE is not the key of TLS_CERT_FILE'],
  [{ TLS_CERT_FILE: inFolder('first.key') }, `TLS_CERT_FILE cannot be used: ${inFolder('first.key')}`],
])('a certificate that cannot be served with is rejected at the start: %p', async (wrong, message) => {
  install('first')
  const settings = { ...database.settings, ...files, ...wrong }
  expect(errorLineOf(await run(['serve'], { settings }))).toBe(message)
})
