// The tests share one page, in their order: to draw every operation takes long.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openWindow, type Watched } from '../browser.ts'
import { eventually } from '../program.ts'
import { useProgram } from '../use.ts'

const HISTORY = '#operations-History-getPromptHistory'
const SIGNALS = '#operations-Signals-createSignal'

let window: Watched

afterAll(() => window?.page.context().close())
const { server, tenant } = useProgram()

beforeAll(async () => {
  window = await openWindow(server.url)
})

test('shows every operation at /docs, with nothing from elsewhere and nothing failing', async () => {
  await expectOperations('/docs')
  await expand(SIGNALS)
  const { page, troubles } = window
  await page.locator(`${SIGNALS} .opblock-body`).getByText('The signal is recorded and counted.').waitFor()
  const statuses = await page.locator(`${SIGNALS} .response-col_status`).allInnerTexts()
  expect(statuses.filter((text) => /^\d/.test(text)).join(' ')).toBe('200 201 401 403 404 422 429 500 503')
  expect(troubles).toEqual([])
})

test('calls the service with a key from the page', async () => {
  const { page, troubles } = window
  await page.locator('button.authorize').first().click()
  await page.locator('.auth-container input').fill(tenant.key)
  await page.locator('.auth-container button.authorize').click()
  await page.locator('.auth-container button.btn-done').click()
  await tryOut(SIGNALS)
  expect(await execute(SIGNALS)).toMatchObject({ status: '201', body: { data: { id: 1, value: 'positive' } } })
  await expand(HISTORY)
  await tryOut(HISTORY)
  expect(await execute(HISTORY)).toEqual({
    status: '200',
    body: { data: [], pagination: { current_page: 1, total_pages: 0, total_count: 0, per_page: 25 } },
  })
  // What is tried out carries no idempotency key of an example: this is a new signal.
  expect(await execute(SIGNALS)).toMatchObject({ status: '201', body: { data: { id: 1_001, value: 'positive' } } })
  expect(troubles).toEqual([])
})

test('shows the same at /docs/, and keeps no key: another who opens the page has to bring one', async () => {
  const storages = 'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])'
  expect(await window.page.evaluate(storages)).not.toContain(tenant.key)
  await expectOperations('/docs/')
  expect(window.troubles).toEqual([])
  await expand(SIGNALS)
  await tryOut(SIGNALS)
  expect(await execute(SIGNALS)).toMatchObject({ status: '401' })
})

async function expectOperations(path: string): Promise<void> {
  const { page } = window
  await page.goto(server.url + path)
  await page.locator('.opblock').nth(1).waitFor()
  expect(await page.title()).toBe('prompt-signals API')
  const { paths } = (await (await fetch(`${server.url}/docs/json`)).json()) as { paths: Record<string, object> }
  const operations = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map(() => path))
  expect((await page.locator('.opblock-summary-path').allInnerTexts()).sort()).toEqual(operations.sort())
}

const expand = (operation: string) => window.page.locator(`${operation} .opblock-summary-control`).click()

/** Fills in the example of an operation that is expanded. */
async function tryOut(operation: string): Promise<void> {
  const block = window.page.locator(operation)
  await block.locator('.try-out__btn').click()
  await block.locator('tr[data-param-name="prompt_id"] input').fill(tenant.prompt)
}

/** Sends the example, and gives the answer as the page shows it. */
async function execute(operation: string): Promise<{ status: string | undefined; body: unknown }> {
  const { page } = window
  const block = page.locator(operation)
  const answered = page.waitForResponse((response) => response.url().includes('/api/v1/'))
  await block.locator('button.execute').click()
  const body = await (await answered).json()
  const response = block.locator('.live-responses-table .response')
  const shown = response.locator('.response-col_description .highlight-code code').first()
  // Until it is drawn, the page shows the answer to the request before.
  await eventually(async () => JSON.parse((await shown.textContent()) ?? ''), body)
  return { status: (await response.locator('.response-col_status').textContent())?.trim(), body }
}
