import { expect, test } from 'bun:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { createApp } from '../../src/app.ts'
import { consolePaths } from '../../src/http/console_paths.ts'
import { useOwnService } from '../use.ts'

const service = useOwnService()

/** Gets a file as a browser does, before it is unpacked. */
async function get(path: string, headers: Record<string, string> = {}) {
  const response = await fetch(service.url + path, { headers, decompress: false })
  return { status: response.status, headers: response.headers, body: Buffer.from(await response.arrayBuffer()) }
}

async function filesOfPage(path = '/'): Promise<string[]> {
  const html = (await get(path)).body.toString()
  const links = [...html.matchAll(/(?:href|src)="([^"]*console\/[^"]+)"/g)]
  return links.map(([, link = '']) => new URL(link, service.url + path).pathname)
}

test.each([...consolePaths, '/settings/keys/'])(
  'the page is served at %s, with its headers and with a way to its files',
  async (path) => {
    const address = path.replace(':prompt_id', 'pmt_greeting')
    const { status, headers, body } = await get(address)
    expect(status).toBe(200)
    const { 'x-request-id': _, etag, date: __, ...rest } = Object.fromEntries(headers)
    expect(rest).toEqual({
      'content-type': 'text/html; charset=utf-8',
      'content-length': String(body.length),
      'cache-control': 'no-cache',
      vary: 'Accept-Encoding',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    })
    const files = await filesOfPage(address)
    expect(files).toHaveLength(2)
    for (const file of files) expect((await get(file)).status).toBe(200)
    expect((await get(address, { 'if-none-match': etag as string })).status).toBe(304)
  },
)

test('the page of a missing address has the security headers of the others', async () => {
  const page = await get('/')
  const missing = await get('/no/such/page', { accept: 'text/html' })
  expect([missing.status, missing.headers.get('content-type')]).toEqual([404, page.headers.get('content-type')])
  const names = ['content-security-policy', 'x-content-type-options', 'referrer-policy', 'cross-origin-opener-policy']
  const of = ({ headers }: typeof page) => names.map((name) => headers.get(name))
  expect(of(page)).not.toContain(null)
  expect(of(missing)).toEqual(of(page))
})

test('a file is kept by browsers for ever, and sent as they take it', async () => {
  for (const path of await filesOfPage()) {
    const plain = await get(path)
    for (const [accepted, encoding, unpack] of [
      ['gzip, deflate', 'gzip', gunzipSync],
      ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
      ['br;q=0, gzip;q=0', undefined, (bytes: Buffer) => bytes],
    ] as const) {
      const { headers, body } = await get(path, { 'accept-encoding': accepted })
      expect(Object.fromEntries(headers)).toMatchObject({
        'cache-control': 'public, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
        vary: 'Accept-Encoding',
      })
      expect(headers.get('content-encoding') ?? undefined).toBe(encoding as string)
      expect(unpack(body)).toEqual(plain.body)
    }
  }
})

test('all of the console is at most 100 KB, gzipped', async () => {
  const { files } = JSON.parse(await Bun.file('generated/console.bundle').text())
  const sizes = Object.values(files as Record<string, { gzip: string }>).map(
    ({ gzip }) => Buffer.from(gzip, 'base64').length,
  )
  const page = await get('/', { 'accept-encoding': 'gzip' })
  expect(sizes.reduce((sum, size) => sum + size, page.body.length)).toBeLessThan(100_000)
})

test('turned off, it leads to the documentation, and none of it is there', async () => {
  const app = createApp(service.services, { servesConsole: false })
  const ask = (path: string) => app.fetch(new Request(`http://localhost${path}`))
  const root = await ask('/')
  expect([root.status, root.headers.get('location')]).toEqual([302, 'docs'])
  expect((await get('/docs')).body.toString()).toContain('>Console</a>')
  expect(await (await ask('/docs')).text()).not.toContain('>Console</a>')
  const [file = ''] = await filesOfPage()
  for (const path of ['/signals', '/settings/keys', file]) {
    const answer = await ask(path)
    expect([answer.status, await answer.json()]).toEqual([
      404,
      { error: expect.objectContaining({ code: 'not_found' }) },
    ])
  }
})
