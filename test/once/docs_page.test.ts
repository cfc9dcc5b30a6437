// The documentation page of the built binary, in a real browser that reaches no other host.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { launchBrowser, openWindow, type Watched } from '../browser.ts'
import { cleanEnvironment } from '../environment.ts'

const BINARY = join(import.meta.dir, '../../dist/prompt-signals')
const HISTORY = '#operations-History-getPromptHistory'
const SIGNALS = '#operations-Signals-createSignal'

let dataDir: string
let server: Bun.Subprocess<'ignore', 'pipe', 'inherit'>
let url: string
let browser: Browser
let key: string
let prompt: string

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'docs-page-'))
  server = Bun.spawn([BINARY, 'serve', '--port', '0'], {
    env: { ...cleanEnvironment(), DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  url = await addressOf(server)
  const { id: org } = await command('orgs', 'create', '--name', 'Readers', '--plan', 'free')
  key = (await command('keys', 'create', '--org', `${org}`)).key ?? ''
  prompt = (await command('prompts', 'create', '--org', `${org}`, '--name', 'greeting')).id ?? ''
  browser = await launchBrowser()
})

afterAll(async () => {
  await browser?.close()
  server?.kill()
  await server?.exited
  await rm(dataDir, { recursive: true, force: true })
})

test.each(['/docs', '/docs/'])(
  'shows every operation at %s, with nothing from elsewhere and nothing failing',
  async (path) => {
    const { page, troubles } = await openPage(path)
    expect(await page.title()).toBe('prompt-signals API')
    const { paths } = (await (await fetch(`${url}/docs/json`)).json()) as { paths: Record<string, object> }
    const operations = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map(() => path))
    expect((await page.locator('.opblock-summary-path').allInnerTexts()).sort()).toEqual(operations.sort())
    await page.locator(`${SIGNALS} .opblock-summary-control`).click()
    await page.locator(`${SIGNALS} .opblock-body`).getByText('The signal is recorded and counted.').waitFor()
    const statuses = await page.locator(`${SIGNALS} .response-col_status`).allInnerTexts()
    expect(statuses.filter((text) => /^\d/.test(text))).toEqual(['201', '401', '403', '404', '422', '429', '500'])
    expect(troubles).toEqual([])
    await page.close()
  },
)

test('calls the service with a key from the page', async () => {
  const { page, troubles } = await openPage('/docs')
  await page.locator('button.authorize').first().click()
  await page.locator('.auth-container input').fill(key)
  await page.locator('.auth-container button.authorize').click()
  await page.locator('.auth-container button.btn-done').click()

  expect(await tryOut(page, SIGNALS)).toMatchObject({ status: '201', body: { data: { id: 1, value: 'positive' } } })
  expect(await tryOut(page, HISTORY)).toEqual({
    status: '200',
    body: { data: [], pagination: { current_page: 1, total_pages: 0, total_count: 0, per_page: 25 } },
  })
  // The key survives a reload, and what is tried out carries no idempotency key of an example: this is a new signal.
  await page.reload()
  expect(await tryOut(page, SIGNALS)).toMatchObject({ status: '201', body: { data: { id: 2, value: 'positive' } } })
  expect(troubles).toEqual([])
  await page.close()
})

async function openPage(path: string): Promise<Watched> {
  const window = await openWindow(browser, url)
  const { page } = window
  await page.goto(url + path)
  await page.locator('.opblock').nth(1).waitFor()
  return window
}

/** Sends the example of an operation, and gives the answer as the page shows it. */
async function tryOut(page: Page, operation: string): Promise<{ status: string | undefined; body: unknown }> {
  const block = page.locator(operation)
  await block.locator('.opblock-summary-control').click()
  await block.locator('.try-out__btn').click()
  await block.locator('tr[data-param-name="prompt_id"] input').fill(prompt)
  await block.locator('button.execute').click()
  const response = block.locator('.live-responses-table .response')
  const status = await response.locator('.response-col_status').textContent()
  const body = await response.locator('.response-col_description .highlight-code code').first().textContent()
  return { status: status?.trim(), body: JSON.parse(body ?? '') }
}

async function addressOf({ stdout }: { stdout: ReadableStream<Uint8Array> }): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stdout) {
    text += decoder.decode(chunk, { stream: true })
    const line = text.split('\n').find((one) => one.includes('"msg":"serving"'))
    if (line) return JSON.parse(line).url
  }
  throw new Error(`the server ended before it served: ${text}`)
}

async function command(...words: string[]): Promise<Record<string, string>> {
  const child = Bun.spawn([BINARY, ...words, '--json'], {
    env: { ...cleanEnvironment(), DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const text = await child.stdout.text()
  if ((await child.exited) !== 0) throw new Error(`${words.join(' ')} failed`)
  return JSON.parse(text)
}
