import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser } from '../browser.ts'
import { eventually } from '../program.ts'
import { useService, useTenant } from '../use.ts'

const GUIDE = join(import.meta.dir, '../../docs/browser.md')

let key: string
let site: Bun.Server<undefined>
let browser: Browser
let snippet: string

afterAll(async () => {
  await browser?.close()
  await site?.stop(true)
})
const service = useService()
const tenant = useTenant(service)

beforeAll(async () => {
  site = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () =>
      new Response(`<!doctype html><title>shop</title>${snippet}`, { headers: { 'content-type': 'text/html' } }),
  })
  const terms = { origins: [origin()], prompts: null, monthly_limit: 3 }
  key = (await service.createKey(tenant, ['signals:write'], terms)).key
  // The snippet as it stands in the guide, with what the guide says to put there.
  const [, html = ''] = /```html\n(.*?)```/s.exec(await Bun.file(GUIDE).text()) ?? []
  snippet = html
    .replace('https://signals.example.com', service.url)
    .replace('pmt_…', tenant.prompt)
    .replace('psk_…', key)
  browser = await launchBrowser()
})

const origin = (host = '127.0.0.1') => `http://${host}:${site.port}`

const recorded = () => service.services.db.sql`
  select s.value, s.metadata from signals s join prompts p on p.id = s.prompt_id
  where p.public_id = ${tenant.prompt} order by s.id`

const click = (page: Page) => page.locator('#thumbs-up').click()

/** Sends what the button sends, and returns what the page can read of the answer. */
const send = (page: Page) =>
  page.evaluate(
    async ([url, text]) => {
      const headers = { authorization: `Bearer ${text}`, 'content-type': 'application/json' }
      const response = await fetch(url as string, { method: 'POST', headers, body: '{"value":"negative"}' })
      const { error } = (await response.json()) as { error?: { limited_by?: string } }
      return { status: response.status, limitedBy: error?.limited_by, rateLimit: response.headers.get('ratelimit') }
    },
    [`${service.url}/api/v1/prompts/${tenant.prompt}/signals`, key],
  )

test('the button of the guide records a signal while the page is being left', async () => {
  const page = await browser.newPage()
  await page.goto(`${origin()}/answer`)
  // The click comes with the very last event of the page, whose script ends with it.
  await page.evaluate(() => {
    const { document } = globalThis as unknown as { document: { querySelector(of: string): { click(): void } } }
    addEventListener('pagehide', () => document.querySelector('#thumbs-up').click())
  })
  await page.goto('about:blank')
  await eventually(recorded, [{ value: 'positive', metadata: { page: '/answer' } }], 20_000)
  await page.close()
})

test('the button of the guide records a signal, and the page reads answers and rejections', async () => {
  const page = await browser.newPage()
  const warnings: string[] = []
  page.on('console', (message) => warnings.push(message.text()))
  await page.goto(origin())
  await click(page)
  await eventually(async () => (await recorded()).length, 2, 20_000)
  expect(await send(page)).toMatchObject({ status: 201, rateLimit: expect.stringMatching(/^"signals";r=0;/) })
  expect(await send(page)).toMatchObject({ status: 429, limitedBy: 'key_month' })
  await page.reload()
  await click(page)
  await eventually(() => warnings.some((text) => text.includes('This API key has used all')), true, 20_000)
  await page.close()
})

test('a page of another origin records nothing', async () => {
  const page = await browser.newPage()
  const before = (await recorded()).length
  await page.goto(origin('localhost'))
  expect(await send(page).catch((error: Error) => error.message)).toContain('Failed to fetch')
  expect(await recorded()).toHaveLength(before)
  await page.close()
})
