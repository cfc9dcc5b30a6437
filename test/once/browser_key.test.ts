// The button of the guide, on a page of another origin than the service's.
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { findBarriers, shareBrowser } from '../browser.ts'
import { readBlock } from '../documents.ts'
import { eventually } from '../program.ts'
import { useNewTenant, useService } from '../use.ts'

let site: Bun.Server<undefined>
let page: Page

afterEach(() => page?.close())
afterAll(() => site?.stop(true))
const service = useService()
const tenant = useNewTenant(service)

beforeAll(async () => {
  const html = await readBlock('docs/browser.md', 'html')
  site = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    // As a strict page would: no inline styles, no HTML from text.
    fetch({ url }) {
      const given = new URL(url).searchParams
      const body = html
        .replace('https://signals.example.com', service.url)
        .replace('pmt_…', given.get('prompt') ?? '')
        .replace('psk_…', given.get('key') ?? '')
        .replace('<prompt-feedback', `<prompt-feedback ${given.get('more') ?? ''}`)
      const policy = `default-src 'none'; script-src ${service.url}; connect-src ${service.url}; require-trusted-types-for 'script'`
      const headers = { 'content-type': 'text/html', 'content-security-policy': policy }
      return new Response(`<!doctype html><html lang="en"><title>shop</title><main><h1>Shop</h1>${body}</main>`, {
        headers,
      })
    },
  })
})

/** Closed after the test. */
async function openPage(more = '', limit = 100, host = '127.0.0.1'): Promise<Page> {
  const terms = { origins: [`http://127.0.0.1:${site.port}`], prompts: null, monthly_limit: limit }
  const { key } = await service.createKey(tenant, ['signals:write'], terms)
  page = await (await shareBrowser()).newPage()
  await page.goto(`http://${host}:${site.port}/?${new URLSearchParams({ prompt: tenant.prompt, key, more })}`)
  return page
}

const recorded = () => service.services.db.sql`
  select s.value, s.metadata from signals s join prompts p on p.id = s.prompt_id
  where p.public_id = ${tenant.prompt} order by s.id`

const up = (page: Page) => page.getByRole('button', { name: 'Good answer' })
const down = (page: Page) => page.getByRole('button', { name: 'Bad answer' })
const status = (page: Page) => page.getByRole('status')

const positive = { value: 'positive', metadata: { commit_sha: '45c48cce2e2d' } }

test('a click records one signal for the life of the tab, and the other button a new one', async () => {
  const page = await openPage()
  expect(await findBarriers(page)).toEqual([])
  await up(page).click()
  await status(page).getByText('Thank you.').waitFor()
  await page.reload()
  await up(page).focus()
  await page.keyboard.press('Enter')
  await status(page).getByText('Thank you.').waitFor()
  expect(await recorded()).toEqual([positive])
  await down(page).click()
  await eventually(recorded, [positive, { ...positive, value: 'negative' }])
  expect(await down(page).getAttribute('aria-pressed')).toBe('true')
})

test('a click is recorded while the page is being left', async () => {
  const page = await openPage()
  // The click comes with the very last event of the page, whose script ends with it.
  await up(page).evaluate((button) =>
    addEventListener('pagehide', () => (button as unknown as { click(): void }).click()),
  )
  await page.goto('about:blank')
  await eventually(recorded, [positive], 20_000)
})

test('a comment goes with the signal; a choice without one counts when the page is left', async () => {
  const page = await openPage('comment')
  await up(page).click()
  expect(await findBarriers(page)).toEqual([])
  await page.getByLabel('Comment').fill('Friendlier than before')
  await page.getByRole('button', { name: 'Send' }).click()
  const commented = { value: 'positive', metadata: { ...positive.metadata, comment: 'Friendlier than before' } }
  await eventually(recorded, [commented])
  await down(page).click()
  await page.goto('about:blank')
  await eventually(recorded, [commented, { ...positive, value: 'negative' }], 20_000)
})

test('a comment that could not be sent is kept, and goes with the next attempt', async () => {
  const page = await openPage('comment')
  await page.context().setOffline(true)
  await up(page).click()
  await page.getByLabel('Comment').fill('Friendlier')
  await page.getByRole('button', { name: 'Send' }).click()
  await status(page).getByText('Not sent. Please try again.').waitFor()
  await page.context().setOffline(false)
  await up(page).click()
  await page.getByRole('button', { name: 'Send' }).click()
  await eventually(recorded, [{ ...positive, metadata: { ...positive.metadata, comment: 'Friendlier' } }])
})

test('a comment that could not be sent does not go with another choice made meanwhile', async () => {
  const page = await openPage('comment')
  await page.context().setOffline(true)
  const failed = page
    .locator('prompt-feedback')
    .evaluate((element) => new Promise((resolve) => element.addEventListener('feedback', resolve, { once: true })))
  await up(page).click()
  await page.getByLabel('Comment').fill('Friendlier')
  await page.getByRole('button', { name: 'Send' }).click()
  await down(page).click()
  await failed
  expect(await page.getByLabel('Comment').inputValue()).toBe('')
})

test('a choice waits for its comment while its element is moved, and counts when it is removed', async () => {
  const page = await openPage('comment')
  await up(page).click()
  await page.getByLabel('Comment').fill('Friend')
  await page.locator('prompt-feedback').evaluate((element) => element.parentNode?.append(element))
  await page.getByLabel('Comment').fill('Friendlier')
  await page.locator('prompt-feedback').evaluate((element) => element.remove())
  await eventually(recorded, [{ ...positive, metadata: { ...positive.metadata, comment: 'Friendlier' } }])
})

test('an element that is used again for another answer has a vote for each', async () => {
  const page = await openPage('comment')
  const show = (answer: string) =>
    page.locator('prompt-feedback').evaluate((element, text) => element.setAttribute('metadata', text), answer)
  await show('{"answer":1}')
  await up(page).click()
  await page.getByRole('button', { name: 'Send' }).click()
  await status(page).getByText('Thank you.').waitFor()
  await show('{"answer":2}')
  expect(await up(page).getAttribute('aria-pressed')).toBe('false')
  await up(page).click()
  await page.getByLabel('Comment').fill('Short')
  await show('{"answer":3}')
  expect(await up(page).getAttribute('aria-pressed')).toBe('false')
  const votes = [{ answer: 1 }, { answer: 2, comment: 'Short' }]
  await eventually(
    recorded,
    votes.map((vote) => ({ value: 'positive', metadata: { ...vote, ...positive.metadata } })),
  )
})

test('going back to the choice that was sent drops the other one', async () => {
  const page = await openPage('comment')
  await up(page).click()
  await page.getByRole('button', { name: 'Send' }).click()
  await status(page).getByText('Thank you.').waitFor()
  await down(page).click()
  await up(page).click()
  expect(await up(page).getAttribute('aria-pressed')).toBe('true')
  expect(await page.getByLabel('Comment').isVisible()).toBe(false)
  await page.goto('about:blank')
  expect(await recorded()).toEqual([positive])
})

test('the page hears what became of a click, and a refused one can be repeated', async () => {
  const page = await openPage('', 0)
  const heard = page.evaluate(
    () =>
      new Promise((resolve) =>
        addEventListener('feedback', (event) => resolve((event as CustomEvent).detail.error.limitedBy)),
      ),
  )
  await up(page).click()
  expect(await heard).toBe('key_month')
  await status(page).getByText('Not sent. Please try again.').waitFor()
  expect(await up(page).getAttribute('aria-pressed')).toBe('false')
})

test('a late answer to the first choice leaves the second one shown', async () => {
  const page = await openPage()
  const first = Promise.withResolvers<void>()
  await page.route('**/signals', async (route) => {
    if (route.request().postDataJSON().value === 'positive') await first.promise
    await route.continue()
  })
  const heard = page.evaluate(
    () =>
      new Promise((resolve) =>
        addEventListener('feedback', (event) => (event as CustomEvent).detail.value === 'positive' && resolve(null)),
      ),
  )
  await up(page).click()
  await down(page).click()
  await status(page).getByText('Thank you.').waitFor()
  first.resolve()
  await heard
  expect(await down(page).getAttribute('aria-pressed')).toBe('true')
})

test('a page of another origin records nothing', async () => {
  const page = await openPage('', 100, 'localhost')
  await up(page).click()
  await status(page).getByText('Not sent. Please try again.').waitFor()
  expect(await recorded()).toEqual([])
})

test('the key may have the name that React and Vue pass on', async () => {
  const page = await openPage()
  await page.locator('prompt-feedback').evaluate((element) => {
    element.setAttribute('browser-key', element.getAttribute('key') ?? '')
    element.removeAttribute('key')
  })
  await up(page).click()
  await eventually(recorded, [positive])
})

test('the lines of the README are those of the guide', async () => {
  const readLines = async (path: string) =>
    (await readBlock(path, 'html')).replace(/https?:\/\/[^/]*/, '').replace(/commit="\w+"/, '')
  expect(await readLines('README.md')).toBe(await readLines('docs/browser.md'))
})

test('the script takes at most 4,000 bytes, and is cached for long under the name of its version', async () => {
  const script = await fetch(`${service.url}/feedback.js`)
  const text = await script.text()
  expect(gzipSync(text, { level: 9 }).length).toBeLessThanOrEqual(4_000)
  expect(script.headers.get('access-control-allow-origin')).toBe('*')
  const { version } = await Bun.file('package.json').json()
  const versioned = await fetch(`${service.url}/feedback-${version}.js`)
  expect(await versioned.text()).toBe(text)
  expect(versioned.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
})
