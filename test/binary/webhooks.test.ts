import { afterAll, beforeEach, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { createCertificate } from '../certificate.ts'
import { createClient } from '../client.ts'
import { createDatabaseWithTenant } from '../harness.ts'
import { createFolder, createOperator, eventually, type Row, type Server, startServer } from '../program.ts'
import { entry } from '../service.ts'
import { closeAfterTest } from '../use.ts'
import { hang, type Received, useReceiver } from '../webhooks/receiver.ts'

const made = createCertificate(createFolder(), 'localhost', '-addext', 'subjectAltName=DNS:localhost')
const [cert, key] = [made.TLS_CERT_FILE, made.TLS_KEY_FILE]

const receiver = useReceiver({ cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') })
const { port } = new URL(receiver.url)
const url = `https://localhost:${port}/hook`

beforeEach(() => {
  receiver.received.length = 0
  receiver.answer = () => new Response('thanks')
})

let proxied = 0
const proxy = createServer((socket) => {
  proxied += 1
  socket.destroy()
}).listen(0, '127.0.0.1')
afterAll(() => proxy.close())

async function start() {
  const { tenant, ...database } = await closeAfterTest(createDatabaseWithTenant())
  const proxyUrl = `http://127.0.0.1:${(proxy.address() as { port: number }).port}`
  const settings = {
    ...database.settings,
    WEBHOOK_ALLOWED_HOSTS: 'localhost, 127.0.0.1',
    NODE_EXTRA_CA_CERTS: cert,
    ...{ HTTP_PROXY: proxyUrl, HTTPS_PROXY: proxyUrl, http_proxy: proxyUrl, https_proxy: proxyUrl },
  }
  const operator = createOperator(settings)
  return {
    operator,
    startServer: () => startServer(settings),
    createEndpoint: (url: string) => operator.one('endpoints', 'create', '--org', tenant.org, '--url', url),
    record: async ({ url }: Server) =>
      (await createClient(url)).post(`/prompts/${tenant.prompt}/history`, tenant.key, entry()),
    deliveries: async (id: string) =>
      (await operator.json('endpoints', 'deliveries', id)).map(({ status, response_text }: Row) => [
        status,
        response_text,
      ]),
  }
}

test('the binary sends over TLS to the name of the certificate, and through no proxy', async () => {
  const { startServer, createEndpoint, record, deliveries } = await start()
  const server = await startServer()
  const { id, secret } = await createEndpoint(url)
  const misnamed = await createEndpoint(`https://127.0.0.1:${port}/hook`)
  expect((await record(server)).status).toBe(201)
  await eventually(() => deliveries(id), [['delivered', 'thanks']])
  const [{ headers, body }] = receiver.received as [Received]
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({ type: 'change.live' })
  await eventually(() => deliveries(misnamed.id), [['pending', 'No answer: ERR_TLS_CERT_ALTNAME_INVALID.']])
  expect(receiver.received).toHaveLength(1)
  expect(proxied).toBe(0)
  expect(await server.stop()).toBe(0)
})

test('a stop does not wait for a receiver that hangs, and the next start sends the event immediately', async () => {
  const { startServer, createEndpoint, record, deliveries } = await start()
  receiver.answer = hang
  const { id } = await createEndpoint(url)
  const first = await startServer()
  expect((await record(first)).status).toBe(201)
  await eventually(() => receiver.received.length, 1)
  expect(await first.stop()).toBe(0)
  receiver.answer = () => new Response('thanks')
  const second = await startServer()
  await eventually(() => deliveries(id), [['delivered', 'thanks']], 15_000)
  expect(await second.stop()).toBe(0)
})
