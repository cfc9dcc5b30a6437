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
async function openPage(more = '', limit = 100, host = '127.0.0.1'): Promise<void> {
  const terms = { origins: [`http://127.0.0.1:${site.port}`], prompts: null, monthly_limit: limit }
  const { key } = await service.createKey(tenant, ['signals:write'], terms)
  page = await (await shareBrowser()).newPage()
  await page.goto(`http://${host}:${site.port}/?${new URLSearchParams({ prompt: tenant.prompt, key, more })}`)
}

const recorded = () => service.services.db.sql`
  select s.value, s.metadata from signals s join prompts p on p.id = s.prompt_id
  where p.public_id = ${tenant.prompt} order by s.id`

const up = () => page.getByRole('button', { name: 'Good answer' })
const down = () => page.getByRole('button', { name: 'Bad answer' })
const comment = () => page.getByLabel('Comment')
const element = () => page.locator('prompt-feedback')
const send = () => page.getByRole('button', { name: 'Send' }).click()
const leave = () => page.goto('about:blank')
const untilTold = (text: 'Thank you.' | 'Not sent. Please try again.') =>
  page.getByRole('status').getByText(text).waitFor()

/** Which of the two buttons are pressed. */
const pressed = async () => [await up().getAttribute('aria-pressed'), await down().getAttribute('aria-pressed')]

/** The limit that the positive choice is rejected by, once the page hears what became of it. */
const hear = () =>
  page.evaluate(() => {
    const { promise, resolve } = Promise.withResolvers()
    addEventListener('feedback', (event) => {
      const { value, error } = (event as CustomEvent).detail
      if (value === 'positive') resolve(error?.limitedBy)
    })
    return promise
  })

const commit = { commit_sha: '45c48cce2e2d' }
const positive = { value: 'positive', metadata: commit }
const negative = { value: 'negative', metadata: commit }
const commented = { value: 'positive', metadata: { ...commit, comment: 'Friendlier' } }

test('a click records one signal for the life of the tab, and the other button a new one', async () => {
  await openPage()
  expect(await findBarriers(page)).toEqual([])
  await up().click()
  await untilTold('Thank you.')
  await page.reload()
  await up().focus()
  await page.keyboard.press('Enter')
  await untilTold('Thank you.')
  expect(await recorded()).toEqual([positive])
  await down().click()
  await eventually(recorded, [positive, negative])
  expect(await pressed()).toEqual(['false', 'true'])
})

test('a click is recorded while the page is being left', async () => {
  await openPage()
  // The click comes with the very last event of the page, whose script ends with it.
  await up().evaluate((button) => addEventListener('pagehide', () => (button as unknown as { click(): void }).click()))
  await leave()
  await eventually(recorded, [positive])
})

test('a comment goes with the signal; a choice without one counts when the page is left', async () => {
  await openPage('comment')
  await up().click()
  expect(await findBarriers(page)).toEqual([])
  await comment().fill('Friendlier')
  await send()
  await eventually(recorded, [commented])
  await down().click()
  await leave()
  await eventually(recorded, [commented, negative])
})

test('a comment that could not be sent is kept, and goes with the next attempt', async () => {
  await openPage('comment')
  await page.context().setOffline(true)
  await up().click()
  await comment().fill('Friendlier')
  await send()
  await untilTold('Not sent. Please try again.')
  await page.context().setOffline(false)
  await up().click()
  await send()
  await eventually(recorded, [commented])
})

test('a comment that could not be sent does not go with another choice made meanwhile', async () => {
  await openPage('comment')
  await page.context().setOffline(true)
  const failed = hear()
  await up().click()
  await comment().fill('Friendlier')
  await send()
  await down().click()
  await failed
  expect(await comment().inputValue()).toBe('')
})

test('a choice waits for its comment while its element is moved, and counts when it is removed', async () => {
  await openPage('comment')
  await up().click()
  await comment().fill('Friend')
  await element().evaluate((moved) => moved.parentNode?.append(moved))
  await comment().fill('Friendlier')
  await element().evaluate((removed) => removed.remove())
  await eventually(recorded, [commented])
})

test('an element that is used again for another answer has a vote for each', async () => {
  await openPage('comment')
  const show = (answer: string) =>
    element().evaluate((shown, metadata) => shown.setAttribute('metadata', metadata), answer)
  await show('{"answer":1}')
  await up().click()
  await send()
  await untilTold('Thank you.')
  await show('{"answer":2}')
  expect(await pressed()).toEqual(['false', 'false'])
  await up().click()
  await comment().fill('Short')
  await show('{"answer":3}')
  expect(await pressed()).toEqual(['false', 'false'])
  await eventually(recorded, [
    { value: 'positive', metadata: { answer: 1, ...commit } },
    { value: 'positive', metadata: { answer: 2, comment: 'Short', ...commit } },
  ])
})

test('going back to the choice that was sent drops the other one', async () => {
  await openPage('comment')
  await up().click()
  await send()
  await untilTold('Thank you.')
  await down().click()
  await up().click()
  expect(await pressed()).toEqual(['true', 'false'])
  expect(await comment().isVisible()).toBe(false)
  await leave()
  expect(await recorded()).toEqual([positive])
})

test('the page hears what became of a click, and a refused one can be repeated', async () => {
  await openPage('', 0)
  const heard = hear()
  await up().click()
  expect(await heard).toBe('key_month')
  await untilTold('Not sent. Please try again.')
  expect(await pressed()).toEqual(['false', 'false'])
})

test('a late answer to the first choice leaves the second one shown', async () => {
  await openPage()
  const first = Promise.withResolvers<void>()
  await page.route('**/signals', async (route) => {
    if (route.request().postDataJSON().value === 'positive') await first.promise
    await route.continue()
  })
  const heard = hear()
  await up().click()
  await down().click()
  await untilTold('Thank you.')
  first.resolve()
  await heard
  expect(await pressed()).toEqual(['false', 'true'])
})

test('a page of another origin records nothing', async () => {
  await openPage('', 100, 'localhost')
  await up().click()
  await untilTold('Not sent. Please try again.')
  expect(await recorded()).toEqual([])
})

test('the key may have the name that React and Vue pass on', async () => {
  await openPage()
  await element().evaluate((named) => {
    named.setAttribute('browser-key', named.getAttribute('key') ?? '')
    named.removeAttribute('key')
  })
  await up().click()
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
