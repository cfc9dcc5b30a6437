// The button of the guide, on a page of another origin than the service's.
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { findBarriers, findOverflow, shareBrowser } from '../browser.ts'
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
      const headers = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': policy }
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

async function recorded() {
  const { body } = await service.get(`/prompts/${tenant.prompt}/signals`, tenant.key)
  return body.data.map(({ value, metadata }: { value: string; metadata: object }) => ({ value, metadata })).reverse()
}

const button = (name: string) => page.getByRole('button', { name })
const up = () => button('Good answer')
const down = () => button('Bad answer')
const comment = () => page.getByLabel('Comment')
const element = () => page.locator('prompt-feedback')
const leave = () => page.goto('about:blank')
const untilTold = (text: 'Thank you.' | 'Withdrawn.' | 'Not sent. Please try again.') =>
  page.getByRole('status').getByText(text).waitFor()

/** The names of the buttons that are pressed. */
const pressed = () =>
  page
    .locator('prompt-feedback [aria-pressed=true]')
    .evaluateAll((buttons) => buttons.map((one) => one.getAttribute('aria-label') ?? one.textContent))

/** What the page hears, once as many requests have ended. */
const hear = (number: number) =>
  page.evaluate((number) => {
    const { promise, resolve } = Promise.withResolvers<object[]>()
    const heard: object[] = []
    addEventListener('feedback', (event) => {
      const { value, subject, error } = (event as CustomEvent).detail
      heard.push({ value, subject, limit: error?.limitedBy })
      if (heard.length === number) resolve(heard)
    })
    return promise
  }, number)

/** The first request waits until this is called, or for ever. */
async function holdFirst(): Promise<() => void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let requests = 0
  await page.route('**/signals**', async (route) => {
    requests += 1
    if (requests === 1) await promise
    await route.continue()
  })
  return resolve
}

const commit = { commit_sha: '45c48cce2e2d' }
const positive = { value: 'positive', metadata: commit }
const negative = { value: 'negative', metadata: commit }
const answer = 'subject="msg_8f2c" reasons="Wrong, Too long,Unsafe" positive-reasons=Clear comment'

test('a click votes, the other thumb replaces the vote, and the same one withdraws it', async () => {
  await openPage('subject=msg_8f2c')
  expect(await findBarriers(page)).toEqual([])
  await up().focus()
  await page.keyboard.press('Enter')
  await untilTold('Thank you.')
  expect([await recorded(), await pressed()]).toEqual([[positive], ['Good answer']])
  await down().dblclick()
  await untilTold('Thank you.')
  expect([await recorded(), await pressed()]).toEqual([[negative], ['Bad answer']])
  await page.reload()
  expect(await pressed()).toEqual(['Bad answer'])
  await down().click()
  await untilTold('Withdrawn.')
  expect([await recorded(), await pressed()]).toEqual([[], []])
  await page.reload()
  expect(await pressed()).toEqual([])
})

test('without a subject a vote can be changed until the page is loaded again', async () => {
  await openPage()
  await up().click()
  await down().click()
  await eventually(recorded, [negative])
  await page.reload()
  expect(await pressed()).toEqual([])
  await up().click()
  await eventually(recorded, [negative, positive])
})

test('reasons and a comment are added to the vote, and go when it changes', async () => {
  await openPage(answer)
  expect(await comment().isVisible()).toBe(false)
  await down().click()
  await eventually(recorded, [negative])
  expect(await findBarriers(page)).toEqual([])
  for (const name of ['Bad answer', 'Wrong', 'Send']) {
    const { width = 0, height = 0 } = (await button(name).boundingBox()) ?? {}
    expect([name, Math.min(width, height, 24)]).toEqual([name, 24])
  }
  for (const name of ['Too long', 'Unsafe', 'Wrong', 'Unsafe']) {
    await button(name).focus()
    await page.keyboard.press('Space')
  }
  await comment().fill('Friendlier')
  await button('Send').click()
  const explained = { ...commit, reasons: ['Wrong', 'Too long'], comment: 'Friendlier' }
  await eventually(recorded, [{ value: 'negative', metadata: explained }])
  expect([await pressed(), await comment().isVisible()]).toEqual([['Bad answer', 'Wrong', 'Too long'], false])
  await page.reload()
  expect(await pressed()).toEqual(['Bad answer', 'Wrong', 'Too long'])
  await button('Wrong').click()
  await eventually(recorded, [{ value: 'negative', metadata: { ...explained, reasons: ['Too long'] } }])
  await up().click()
  await button('Clear').waitFor()
  await eventually(recorded, [positive])
  expect([await pressed(), await button('Wrong').count()]).toEqual([['Good answer'], 0])
})

test('a click is recorded while the page is being left, also after one that has no answer yet', async () => {
  await openPage()
  // The click comes with the very last event of the page, whose script ends with it.
  await up().evaluate((button) => addEventListener('pagehide', () => (button as unknown as { click(): void }).click()))
  await leave()
  await eventually(recorded, [positive])
  await page.close()
  await openPage('subject=msg_8f2c')
  await holdFirst()
  await up().click()
  await down().click()
  await leave()
  await eventually(recorded, [positive, negative])
})

test('a change that could not be sent is taken back, and its comment is kept for the next attempt', async () => {
  await openPage(answer)
  await up().click()
  await untilTold('Thank you.')
  await comment().fill('Friendlier')
  await page.context().setOffline(true)
  await button('Send').click()
  await untilTold('Not sent. Please try again.')
  await down().click()
  await untilTold('Not sent. Please try again.')
  expect(await pressed()).toEqual(['Good answer'])
  await comment().fill('Friendlier')
  await button('Clear').click()
  await untilTold('Not sent. Please try again.')
  expect([await pressed(), await comment().inputValue()]).toEqual([['Good answer'], 'Friendlier'])
  await page.context().setOffline(false)
  await button('Send').click()
  await eventually(recorded, [{ value: 'positive', metadata: { ...commit, comment: 'Friendlier' } }])
})

test('choices are sent one after the other, and only the last of those made meanwhile', async () => {
  await openPage('subject=msg_8f2c')
  const release = await holdFirst()
  const heard = hear(2)
  await up().click()
  await down().click()
  await up().click()
  await down().click()
  release()
  const subject = 'msg_8f2c'
  expect(await heard).toEqual([
    { value: 'positive', subject },
    { value: 'negative', subject },
  ])
  expect([await recorded(), await pressed()]).toEqual([[negative], ['Bad answer']])
})

test('an element that is used again for another answer has a vote for each', async () => {
  await openPage('comment')
  const show = (answer: string) =>
    element().evaluate((shown, metadata) => shown.setAttribute('metadata', metadata), answer)
  await show('{"answer":1}')
  const release = await holdFirst()
  await up().click()
  await down().click()
  await comment().fill('Too long')
  await show('{"answer":2}')
  expect([await pressed(), await comment().inputValue()]).toEqual([[], ''])
  await up().click()
  await untilTold('Thank you.')
  release()
  await eventually(recorded, [
    { value: 'positive', metadata: { answer: 2, ...commit } },
    { value: 'negative', metadata: { answer: 1, ...commit } },
  ])
  expect(await pressed()).toEqual(['Good answer'])
})

test('elements of one subject show one vote, also an element that shows it again before its first vote is sent', async () => {
  await openPage('subject=msg_8f2c')
  await element().evaluate((shown) => shown.after(shown.cloneNode()))
  const thumbs = [up().first(), down().last()] as const
  const release = await holdFirst()
  await thumbs[0].click()
  expect(await pressed()).toEqual(['Good answer', 'Good answer'])
  await element()
    .last()
    .evaluate((shown) => {
      shown.setAttribute('subject', 'another')
      shown.setAttribute('subject', 'msg_8f2c')
    })
  await element().evaluateAll((all) => {
    for (const one of all) {
      one.addEventListener('feedback', (event: CustomEvent) => one.setAttribute('data-heard', event.detail.value))
    }
  })
  const heard = hear(2)
  await thumbs[1].click()
  release()
  const subject = 'msg_8f2c'
  expect(await heard).toEqual([
    { value: 'positive', subject },
    { value: 'negative', subject },
  ])
  expect([await recorded(), await pressed()]).toEqual([[negative], ['Bad answer', 'Bad answer']])
  const heardBy = await element().evaluateAll((all) => all.map((one) => one.getAttribute('data-heard')))
  expect(heardBy).toEqual(['positive', 'negative'])
})

test.each(['{', '5', '{"value":"negative","reasons":null}'])('a stored vote that is %p is none', async (stored) => {
  await openPage(answer)
  await up().click()
  await untilTold('Thank you.')
  await page.evaluate((stored) => {
    for (const name of Object.keys(sessionStorage)) sessionStorage.setItem(name, stored)
  }, stored)
  await page.reload()
  await up().waitFor()
  expect(await pressed()).toEqual([])
})

test('the page hears what became of a click, and a refused one can be repeated', async () => {
  await openPage('subject=msg_8f2c', 0)
  const heard = hear(1)
  await up().click()
  expect(await heard).toEqual([{ value: 'positive', subject: 'msg_8f2c', limit: 'key_month' }])
  await untilTold('Not sent. Please try again.')
  expect(await pressed()).toEqual([])
})

test('its texts are those of the page, which may be written from right to left', async () => {
  await openPage('subject=msg_8f2c reasons="خطأ,إجابة طويلة جدًا" comment')
  const texts = {
    ...{ label: 'التقييم', up: 'إجابة جيدة', down: 'إجابة سيئة', reasons: 'لماذا؟' },
    ...{ comment: 'تعليق', send: 'إرسال', thanks: 'شكرًا لك.', withdrawn: 'سُحب التقييم.', failed: 'لم يُرسل.' },
  }
  await page.setViewportSize({ width: 320, height: 480 })
  await page.evaluate(`document.documentElement.dir = 'rtl'`)
  await element().evaluate((shown, texts) => {
    for (const [name, text] of Object.entries(texts)) shown.setAttribute(`text-${name}`, text)
  }, texts)
  await button(texts.down).click()
  await page.getByRole('status').getByText(texts.thanks).waitFor()
  expect(await element().ariaSnapshot()).toBe(`- group "${texts.label}":
  - button "${texts.up}"
  - button "${texts.down}" [pressed]
  - status: ${texts.thanks}
- group "${texts.reasons}":
  - text: ${texts.reasons}
  - button "خطأ"
  - button "إجابة طويلة جدًا"
- textbox "${texts.comment}"
- button "${texts.send}"`)
  const [right, left] = await Promise.all([button(texts.up).boundingBox(), button(texts.down).boundingBox()])
  expect(right?.x).toBeGreaterThan(left?.x as number)
  expect([await findOverflow(page), await findBarriers(page)]).toEqual([0, []])
  await page.context().setOffline(true)
  await button(texts.down).click()
  await page.getByRole('status').getByText(texts.failed).waitFor()
  await page.context().setOffline(false)
  await button(texts.down).click()
  await page.getByRole('status').getByText(texts.withdrawn).waitFor()
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

test('the script takes at most 4,500 bytes, and is cached for long under the name of its version', async () => {
  const script = await fetch(`${service.url}/feedback.js`)
  const text = await script.text()
  expect(gzipSync(text, { level: 9 }).length).toBeLessThanOrEqual(4_500)
  expect(script.headers.get('access-control-allow-origin')).toBe('*')
  const { version } = await Bun.file('package.json').json()
  const versioned = await fetch(`${service.url}/feedback-${version}.js`)
  expect(await versioned.text()).toBe(text)
  expect(versioned.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
})
