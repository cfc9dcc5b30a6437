// What a reader sees when there is nothing to see, or not yet, or not with this key.
import { expect, test } from 'bun:test'
import type { Route } from 'playwright-core'
import type { Watched } from '../browser.ts'
import { findBarriers } from '../browser.ts'
import { eventually } from '../program.ts'
import { useConsole } from './open.ts'

const own = useConsole()

/** Answers for the service, as it does, on the list of keys. */
const keysAnswer = (status: number, error: object, headers: Record<string, string> = {}) => ({
  expectsTroubles: true,
  prepare: ({ page }: Watched) =>
    page.route('**/api/v1/keys*', (route: Route) => route.fulfill({ status, headers, json: { error } })),
})

test.each([
  ['401', keysAnswer(401, { code: 'unauthorized' }), 'Sign in with another key.'],
  ['403', keysAnswer(403, { code: 'forbidden', scope: 'keys:read' }), 'Your key lacks the scope keys:read.'],
  ['404', keysAnswer(404, { code: 'not_found' }), 'Not found'],
  [
    '422',
    keysAnswer(422, { message: 'The query is not valid.', details: [{ path: 'cursor', message: 'must be …' }] }),
    'cursor must be …',
  ],
  [
    '422 about a range',
    keysAnswer(422, { message: '', details: [{ path: 'since', message: 'must be before until' }] }),
    '“From” must be earlier than “Before”.',
  ],
  ['429', keysAnswer(429, { code: 'rate_limited' }, { 'retry-after': '7300' }), 'Try again in 2 hours.'],
  ['429 of a proxy', keysAnswer(429, {}, { 'retry-after': new Date().toUTCString() }), 'Try again in a moment.'],
  ['503', keysAnswer(503, { code: 'unavailable' }), 'its database does not answer. Try again shortly.Try again'],
  ['500', keysAnswer(500, { code: 'internal_error', request_id: 'abc-123' }), 'Request abc-123'],
])('a %s says what it means and what to do', async (_, options, says) => {
  const { page } = await own.open('/settings/keys', options)
  const alert = page.getByRole('alert')
  await alert.waitFor()
  expect((await alert.textContent())?.replaceAll(/\s+/g, ' ')).toContain(says)
  expect(await findBarriers(page)).toEqual([])
})

test('a key that may read nothing is told apart from a failure, and can be signed out', async () => {
  const terms = { origins: ['https://example.com'], prompts: null, monthly_limit: null }
  const { key } = await own.service.createKey(own.tenant, ['signals:write'], terms)
  const { page } = await own.open('/', { key, expectsTroubles: true })
  await page.getByRole('alert').getByText('A browser key may only record signals.').waitFor()
  expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('API key').waitFor()
})

test('a page of signals says so when something between answers for the service', async () => {
  const { page } = await own.open(`/signals?prompt=${own.tenant.prompt}`, {
    expectsTroubles: true,
    prepare: ({ page }) =>
      page.route('**/signals', (route) => route.fulfill({ status: 200, body: '<h1>Sign in</h1>' })),
  })
  await page.getByRole('alert').getByText('The service cannot be reached').waitFor()
})

test('a page that the key may not see names the scope, and is not asked for again', async () => {
  const { page, requests } = await own.open('/settings/keys', {
    key: await own.keyWith(['usage:read']),
    expectsTroubles: true,
  })
  await page.getByText('Your key lacks the scope keys:read.').waitFor()
  await page.getByRole('link', { name: 'Usage' }).click()
  await page.goBack()
  await page.getByRole('heading', { name: 'No access' }).waitFor()
  expect(await page.locator('h1').allTextContents()).toEqual(['No access'])
  expect(requests.filter((one) => one === 'GET /api/v1/keys').length).toBeLessThanOrEqual(1)
})

test('offline, what was read stays, and trying again heals it', async () => {
  const { page } = await own.open('/settings/audit', { expectsTroubles: true })
  await page.getByRole('row').nth(1).waitFor()
  await page.context().setOffline(true)
  await page.getByRole('link', { name: 'Keys' }).click()
  await page.getByRole('alert').getByText('The service cannot be reached').waitFor()
  await page.context().setOffline(false)
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('row').nth(1).waitFor()
  expect(await page.getByRole('alert').count()).toBe(0)
})

test('too many requests hide nothing that was read before', async () => {
  await own.keyWith(['usage:read'], 'gamma')
  const { page } = await own.open('/settings/keys', { expectsTroubles: true })
  const row = page.getByRole('row', { name: 'gamma' })
  await row.waitFor()
  await page.route('**/api/v1/keys', (route) => route.fulfill({ status: 429, headers: { 'retry-after': '60' } }))
  await row.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByRole('alert').getByText('Too many requests').waitFor()
  await row.waitFor()
})

test('a page opened while the service is away says so once, and trying again brings all of it', async () => {
  let isAway = true
  const { page } = await own.open('/settings/keys', {
    expectsTroubles: true,
    prepare: ({ page }) => page.route('**/api/v1/**', (route) => (isAway ? route.abort() : route.continue())),
  })
  await page.getByRole('alert').getByText('The service cannot be reached').waitFor()
  await eventually(() => page.getByRole('alert').count(), 1)
  expect(await findBarriers(page)).toEqual([])
  isAway = false
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('row').nth(1).waitFor()
  await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Usage' }).waitFor()
  expect(await page.getByRole('alert').count()).toBe(0)
})

/** Timers of a page that fire when the test says so: what is slow is then no matter of the machine. */
const heldTimers = `
  {
    const held = new Map()
    const { setTimeout, clearTimeout } = window
    // Shorter ones are those of the drawing itself.
    window.setTimeout = (callback, ms = 0, ...rest) => {
      if (ms < 150) return setTimeout(callback, ms, ...rest)
      const id = -1 - held.size
      held.set(id, { callback, ms })
      return id
    }
    window.clearTimeout = (id) => id < 0 ? held.set(id, undefined) : clearTimeout(id)
    window.fireTimers = (passedMs) => {
      for (const [id, timer] of held) {
        if (!timer || timer.ms > passedMs) continue
        held.set(id, undefined)
        timer.callback()
      }
    }
  }`

test('an answer from before a change is asked for again', async () => {
  for (const name of ['alpha', 'beta']) await own.keyWith(['usage:read'], name)
  const { page } = await own.open('/settings/keys')
  const revoke = async (name: string) => {
    await page.getByRole('row', { name }).getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  await page.getByRole('row', { name: 'alpha' }).waitFor()
  const held = Promise.withResolvers<void>()
  await page.route(
    '**/api/v1/keys',
    async (route) => {
      const response = await route.fetch()
      await held.promise
      await route.fulfill({ response })
    },
    { times: 1 },
  )
  await revoke('alpha')
  await revoke('beta')
  held.resolve()
  await page.getByRole('row', { name: 'beta' }).getByText('Revoked').waitFor()
})

test('what is quick shows no sign of waiting, and what is slow does', async () => {
  const asked = Promise.withResolvers<void>()
  const gate = Promise.withResolvers<void>()
  const { page } = await own.open('/settings/keys', {
    prepare: async ({ page }) => {
      await page.addInitScript(`
        ${heldTimers}
        window.waits = 0
        new MutationObserver(() => { if (document.querySelector('.skeleton')) window.waits++ })
          .observe(document, { childList: true, subtree: true })`)
      await page.route('**/api/v1/audit*', async (route) => {
        asked.resolve()
        await gate.promise
        await route.continue()
      })
    },
  })
  await page.getByRole('row').nth(1).waitFor()
  await page.getByRole('link', { name: 'Audit log' }).click()
  await asked.promise
  const passTime = (ms: number) =>
    page.evaluate(
      `fireTimers(${ms}); new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))`,
    )
  await passTime(199)
  expect(await page.evaluate('window.waits')).toBe(0)
  await passTime(200)
  await page.getByRole('status').getByText('Loading').waitFor()
  gate.resolve()
  await page.getByRole('row').nth(1).waitFor()
  expect(await page.getByText('Loading').count()).toBe(0)
})

test.each(['de-DE', 'en-US@posix'])('numbers and times are English for a reader of %p', async (language) => {
  const { page } = await own.open('/settings/keys', {
    locale: 'de-DE',
    prepare: ({ page }) =>
      page.addInitScript(`Object.defineProperty(navigator, 'languages', { value: ['${language}'] })`),
  })
  await page.getByText(' of 1,000 this month').first().waitFor()
  expect(await page.locator('tbody time').first().textContent()).toMatch(/ago$|now$/)
})

test('a browser that does not know its time zone shows days in UTC', async () => {
  const { page, requests } = await own.open(`/prompts/${own.tenant.prompt}`, {
    prepare: ({ page }) =>
      page.addInitScript(`
        const { resolvedOptions } = Intl.DateTimeFormat.prototype
        Intl.DateTimeFormat.prototype.resolvedOptions = function () {
          return { ...resolvedOptions.call(this), timeZone: 'Etc/Unknown' }
        }`),
  })
  await page.getByText('Waiting for the first signal').waitFor()
  expect(requests.filter((one) => one.includes('tz=UTC'))).not.toEqual([])
})

test('a chart whose file is gone since the service was upgraded says so, and a reload draws it', async () => {
  const { id } = (await own.service.post('/prompts', own.admin, { name: 'upgraded' })).body.data
  await own.service.post(`/prompts/${id}/signals`, own.admin, { value: 'positive' })
  const { page } = await own.open('/prompts', { expectsTroubles: true })
  await page.getByRole('link', { name: 'upgraded' }).waitFor()
  await page.route('**/console/*.js', (route) => route.fulfill({ status: 404 }))
  await page.getByRole('link', { name: 'upgraded' }).click()
  const again = page.getByRole('alert').getByRole('button', { name: 'Try again' })
  await again.waitFor()
  await page.unroute('**/console/*.js')
  await again.click()
  await page.locator('.plot canvas').waitFor()
  expect(await page.getByRole('alert').count()).toBe(0)
})
