// The files of the console as they are served; test/console looks at them in a browser.
import { expect, test } from 'bun:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { createApp } from '../../src/app.ts'
import { consolePaths } from '../../src/http/console_paths.ts'
import { useOwnService } from '../use.ts'

const maxBytes = 100 * 1_000

const service = useOwnService()

/** Gets a file as a browser does, before it is unpacked. */
async function get(path: string, headers: Record<string, string> = {}) {
  const response = await fetch(service.url + path, { headers, decompress: false })
  return { status: response.status, headers: response.headers, body: Buffer.from(await response.arrayBuffer()) }
}

async function filesOfPage(): Promise<string[]> {
  const html = (await get('/')).body.toString()
  return [...html.matchAll(/(?:href|src)="(console\/[^"]+)"/g)].map(([, path]) => `/${path}`)
}

test.each([...consolePaths, '/settings/keys/'])(
  'the page is served at %s, with its headers and with a way to its files',
  async (path) => {
    const address = path.replace(':prompt_id', 'pmt_greeting')
    const { status, headers, body } = await get(address)
    expect(status).toBe(200)
    const sent = Object.fromEntries(headers)
    const { 'x-request-id': _, etag, date: __, ...rest } = sent
    expect(rest).toEqual({
      'content-type': 'text/html; charset=utf-8',
      'content-length': String(body.length),
      'cache-control': 'no-cache',
      vary: 'Accept-Encoding',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    })
    const files = [...body.toString().matchAll(/(?:href|src)="([^"]*console\/[^"]+)"/g)].map(
      ([, file]) => file as string,
    )
    expect(files).toHaveLength(2)
    for (const file of files) {
      expect((await fetch(new URL(file, service.url + address))).status).toBe(200)
    }
    expect((await get(address, { 'if-none-match': etag as string })).status).toBe(304)
  },
)

test('a file is kept by browsers for ever, and sent as they take it', async () => {
  for (const path of await filesOfPage()) {
    const [plain, gzip, br, rejected] = [
      await get(path),
      await get(path, { 'accept-encoding': 'gzip, deflate' }),
      await get(path, { 'accept-encoding': 'gzip, deflate, br, zstd' }),
      await get(path, { 'accept-encoding': 'br;q=0, gzip;q=0' }),
    ]
    const answers = [plain, gzip, br, rejected].map(({ headers }) => headers)
    expect(answers.map((headers) => headers.get('content-encoding'))).toEqual([null, 'gzip', 'br', null])
    for (const headers of answers) {
      expect([headers.get('cache-control'), headers.get('x-content-type-options'), headers.get('vary')]).toEqual([
        'public, max-age=31536000, immutable',
        'nosniff',
        'Accept-Encoding',
      ])
    }
    expect([gunzipSync(gzip.body), brotliDecompressSync(br.body), rejected.body]).toEqual([
      plain.body,
      plain.body,
      plain.body,
    ])
  }
})

test('all of the console is at most 100 KB, gzipped', async () => {
  const { files } = JSON.parse(await Bun.file('generated/console.bundle').text())
  const sizes = Object.values(files as Record<string, { gzip: string }>).map(
    ({ gzip }) => Buffer.from(gzip, 'base64').length,
  )
  const page = await get('/', { 'accept-encoding': 'gzip' })
  expect(sizes.reduce((sum, size) => sum + size, page.body.length)).toBeLessThan(maxBytes)
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
