import { expect, test } from 'bun:test'
import { connect } from 'node:tls'
import { createCertificate } from '../certificate.ts'
import { createFolder, errorLineOf, run, startServer } from '../program.ts'
import { useDatabase } from '../use.ts'

const folder = createFolder()
const database = useDatabase()

const first = createCertificate(folder, 'first')
const second = createCertificate(folder, 'second')

const certificateOf = (url: string): Promise<string | string[] | undefined> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().subject.CN)
      socket.destroy()
    })
    socket.once('error', reject)
  })

test('serves HTTPS with the certificate', async () => {
  const server = await startServer({ ...database.settings, ...first })
  expect(server.url).toStartWith('https://127.0.0.1:')
  const { port } = new URL(server.url)
  const settings = { ...database.settings, ...first, PORT: port }
  expect((await run(['healthcheck', '--json'], { settings })).stdout).toBe('{"ready":true}\n')
  expect(await certificateOf(server.url)).toBe('first')
  const response = await fetch(`${server.url}/livez`, { tls: { rejectUnauthorized: false } })
  expect(response.status).toBe(200)
  expect(await server.stop()).toBe(0)
})

test.each([
  [{ TLS_KEY_FILE: undefined }, 'Set both TLS_CERT_FILE and TLS_KEY_FILE, or neither'],
  [{ TLS_KEY_FILE: second.TLS_KEY_FILE }, 'TLS_KEY_FILE is not the key of TLS_CERT_FILE'],
  [{ TLS_CERT_FILE: first.TLS_KEY_FILE }, `TLS_CERT_FILE cannot be used: ${first.TLS_KEY_FILE}`],
])('a certificate that cannot be used is rejected at the start: %p', async (wrong, message) => {
  const settings = { ...database.settings, ...first, ...wrong }
  expect(errorLineOf(await run(['serve'], { settings }))).toBe(message)
})
