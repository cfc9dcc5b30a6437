import { beforeAll, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { eventually } from '../program.ts'
import { addEvidence } from './evidence.ts'
import { useConsole } from './open.ts'

const own = useConsole()

beforeAll(async () => {
  await addEvidence(own.service, own.tenant.prompt)
})

const focused = (page: Page): Promise<string> =>
  page.evaluate(`(document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText ?? '').trim()`)

async function tabTo(page: Page, name: RegExp): Promise<void> {
  for (let count = 0; count < 60; count++) {
    await page.keyboard.press('Tab')
    if (name.test(await focused(page))) return
  }
  throw new Error(`The tab key does not lead to ${name}`)
}

test('from the list to a prompt, over its chart, to its changes and back', async () => {
  const { page } = await own.open('/prompts')
  await page.locator('tbody tr').first().waitFor()
  await page.keyboard.press('Tab')
  expect(await focused(page)).toBe('Skip to content')
  await page.keyboard.press('Enter')
  await tabTo(page, /^test$/)
  await page.keyboard.press('Enter')
  await page.locator('.u-over').waitFor()
  // The new page is read from its heading on.
  await eventually(() => focused(page), 'test')
  await tabTo(page, /^7 d$/)
  // The chart starts over with the answer for another range.
  const answered = page.waitForResponse(/\/stats\?/)
  await page.keyboard.press('Enter')
  await answered
  await eventually(() => page.url().endsWith('range=7d'), true)
  await tabTo(page, /^How we decide$/)
  await page.keyboard.press('Enter')
  await page.getByText('stays valid however often you look').waitFor()
  await tabTo(page, /^Signals over time$/)
  await page.keyboard.press('ArrowLeft')
  await page.locator('.reading strong').waitFor()
  await tabTo(page, /^Compare$/)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Compare versions of test' }).waitFor()
  await page.goBack()
  await page.getByRole('heading', { name: 'test', exact: true }).waitFor()
})

test('a key is made, and the focus comes back to where it was', async () => {
  const { page } = await own.open('/settings/keys')
  await page.locator('tbody tr').first().waitFor()
  await tabTo(page, /^New key$/)
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.type('by keyboard')
  await page.keyboard.press('Enter')
  const made = page.getByRole('dialog', { name: 'New key created' })
  await made.waitFor()
  await tabTo(page, /^Done$/)
  await page.keyboard.press('Enter')
  await page.getByRole('row', { name: /^by keyboard/ }).waitFor()
  await eventually(() => focused(page), 'New key')
  await tabTo(page, /^Edit\s+by keyboard$/)
  for (const name of ['Cancel', 'Save']) {
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
    await page.getByRole('button', { name, exact: true }).press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await eventually(async () => /^Edit\s+by keyboard$/.test(await focused(page)), true)
  }
  // Revoked, the key has no buttons any more.
  await page.getByRole('button', { name: 'Revoke by keyboard' }).press('Enter')
  await page.getByRole('button', { name: 'Revoke', exact: true }).press('Enter')
  await eventually(async () => /^by keyboard\s[\s\S]*Revoked/.test(await focused(page)), true)
})

test('the menu of the key opens, closes with Escape, and signs out', async () => {
  const { page } = await own.open('/usage')
  await page.locator('.day-bar').first().waitFor()
  await tabTo(page, /^Key “console”$/)
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Sign out' }).waitFor({ state: 'hidden' })
  expect(await focused(page)).toBe('Key “console”')
  await page.keyboard.press('Enter')
  await tabTo(page, /^Sign out$/)
  await page.keyboard.press('Enter')
  await page.getByLabel('API key').waitFor()
})

test('the menu of a key with a long name is below its button, and within a small window', async () => {
  const key = await own.keyWith(['usage:read'], 'the key of the continuous integration of the shop')
  const { page } = await own.open('/usage', { key, viewport: { width: 320, height: 568 } })
  const opener = page.getByRole('button', { name: /^Key “the key/ })
  await opener.click()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  const [button, menu] = await Promise.all([opener, page.locator('.menu-content')].map((one) => one.boundingBox()))
  if (!button || !menu) throw new Error('One of them is not shown')
  expect(menu.y).toBeGreaterThanOrEqual(button.y + button.height)
  expect(menu.x).toBeGreaterThanOrEqual(0)
  expect(menu.x + menu.width).toBeLessThanOrEqual(320)
})
