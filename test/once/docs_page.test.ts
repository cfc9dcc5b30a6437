import { expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { openWindow } from '../browser.ts'
import { useProgram } from '../use.ts'

const HISTORY = '#operations-History-getPromptHistory'
const SIGNALS = '#operations-Signals-createSignal'

const { server, tenant } = useProgram()

test('shows and calls every operation, with nothing from elsewhere and nothing failing', async () => {
  const { page, troubles } = await openWindow(server.url)
  const { paths } = (await (await fetch(`${server.url}/docs/json`)).json()) as { paths: Record<string, object> }
  const operations = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map(() => path))
  const open = async (path: string) => {
    await page.goto(server.url + path)
    await page.locator('.opblock').nth(1).waitFor()
    expect(await page.title()).toBe('prompt-signals API')
    expect((await page.locator('.opblock-summary-path').allInnerTexts()).sort()).toEqual(operations.sort())
    expect(troubles).toEqual([])
  }
  await open('/docs')
  await expand(page, SIGNALS)
  await page.locator(`${SIGNALS} .opblock-body`).getByText('The signal is recorded and counted.').waitFor()
  const statuses = await page.locator(`${SIGNALS} .response-col_status`).allInnerTexts()
  expect(statuses.filter((text) => /^\d/.test(text))).toEqual(['201', '401', '403', '404', '422', '429', '500', '503'])
  await page.locator('button.authorize').first().click()
  await page.locator('.auth-container input').fill(tenant.key)
  await page.locator('.auth-container button.authorize').click()
  await page.locator('.auth-container button.btn-done').click()

  expect(await tryOut(page, SIGNALS)).toMatchObject({ status: '201', body: { data: { id: 1, value: 'positive' } } })
  await expand(page, HISTORY)
  expect(await tryOut(page, HISTORY)).toEqual({
    status: '200',
    body: { data: [], pagination: { current_page: 1, total_pages: 0, total_count: 0, per_page: 25 } },
  })
  // What is tried out carries no idempotency key of an example: this is a new signal.
  await page.locator(`${SIGNALS} .btn-clear`).click()
  expect(await execute(page, SIGNALS)).toMatchObject({ status: '201', body: { data: { id: 2, value: 'positive' } } })
  expect(troubles).toEqual([])
  // The browser keeps no key: another who opens the page has to bring one.
  const storages = 'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])'
  expect(await page.evaluate(storages)).not.toContain(tenant.key)
  await open('/docs/')
  await expand(page, SIGNALS)
  expect(await tryOut(page, SIGNALS)).toMatchObject({ status: '401' })
  await page.context().close()
})

const expand = (page: Page, operation: string) => page.locator(`${operation} .opblock-summary-control`).click()

/** Sends the example of an operation that is expanded, and gives the answer as the page shows it. */
async function tryOut(page: Page, operation: string): Promise<{ status: string | undefined; body: unknown }> {
  const block = page.locator(operation)
  await block.locator('.try-out__btn').click()
  await block.locator('tr[data-param-name="prompt_id"] input').fill(tenant.prompt)
  return execute(page, operation)
}

async function execute(page: Page, operation: string): Promise<{ status: string | undefined; body: unknown }> {
  const block = page.locator(operation)
  await block.locator('button.execute').click()
  const response = block.locator('.live-responses-table .response')
  const status = await response.locator('.response-col_status').textContent()
  const body = await response.locator('.response-col_description .highlight-code code').first().textContent()
  return { status: status?.trim(), body: JSON.parse(body ?? '') }
}
