import { expect, test } from 'bun:test'
import { findBarriers, findOverflow, findSmallTargets } from '../browser.ts'
import { emit, setOutcome } from '../webhooks/emit.ts'
import { useConsole } from './open.ts'

const own = useConsole()
const path = '/settings/endpoints'

const list = async () => (await own.service.get('/webhooks/endpoints', own.admin)).body.data
const create = async (json: object) => (await own.service.post('/webhooks/endpoints', own.admin, json)).body.data

test('an endpoint is created with its secret shown once, edited, rotated, and removed after a question', async () => {
  const { page } = await own.open(path, { expectsTroubles: true })
  await page.getByText('No endpoints yet').waitFor()
  await page.getByRole('button', { name: 'New endpoint' }).click()
  await page.getByLabel('URL').fill('http://example.com/hook')
  await page.getByLabel('a change went live').check()
  await page.getByRole('group', { name: 'Prompts' }).getByLabel('test').check()
  await page.getByRole('button', { name: 'Create endpoint' }).click()
  await page.getByRole('alert').getByText('url must begin with https://').waitFor()
  await page.getByLabel('URL').fill('https://example.com/hook?token=XXXX')
  expect(await findBarriers(page)).toEqual([])
  await page.getByRole('button', { name: 'Create endpoint' }).click()
  const shown = page.getByRole('dialog', { name: 'New endpoint created' })
  const secret = await shown.locator('code').textContent()
  expect(secret).toMatch(/^whsec_/)
  await shown.getByRole('button', { name: 'Done' }).click()
  const row = page.getByRole('row', { name: /^https:\/\/example\.com\/hook\?…/ })
  expect(await row.textContent()).toContain('change.liveof 1 promptEnabled')
  expect(await page.content()).not.toContain(secret as string)
  await row.getByRole('button', { name: 'Edit' }).click()
  await page.getByText('Leave empty to keep https://example.com/hook?…').waitFor()
  await own.service.patch(`/webhooks/endpoints/${(await list())[0].id}`, own.admin, { prompts: null })
  await page.getByLabel('a change went live').uncheck()
  await page.getByLabel('Enabled').uncheck()
  await page.getByRole('button', { name: 'Save' }).click()
  await row.getByText('Disabled').waitFor()
  // What was changed elsewhere while the form was open stays.
  expect(await list()).toMatchObject([{ events: null, prompts: null, enabled: false, disabled_reason: 'requested' }])
  await own.service.patch(`/webhooks/endpoints/${(await list())[0].id}`, own.admin, { url: 'https://127.0.0.1/hook?a' })
  await page.reload()
  await page.getByRole('button', { name: 'Test' }).click()
  await page.getByRole('button', { name: 'Send ping' }).click()
  await page.getByRole('status').getByText('Not delivered').waitFor()
  expect(await findBarriers(page)).toEqual([])
  await page.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Rotate' }).click()
  await page.getByLabel('Old secret stays valid').selectOption('for 1 hour')
  await page.getByRole('button', { name: 'Rotate', exact: true }).click()
  const rotated = page.getByRole('dialog', { name: 'Secret rotated' })
  expect(await rotated.locator('code').textContent()).not.toBe(secret)
  await rotated.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove', exact: true }).click()
  await page.getByText('No endpoints yet').waitFor()
  expect(await list()).toEqual([])
})

test('an endpoint for a chat is created without a secret to keep, and shows only the host', async () => {
  const { page } = await own.open(path)
  await page.getByRole('button', { name: 'New endpoint' }).click()
  await page.getByLabel('Kind').selectOption('slack')
  await page.getByLabel('URL').fill('https://hooks.slack.com/services/XXXX')
  await page.getByRole('button', { name: 'Create endpoint' }).click()
  const row = page.getByRole('row', { name: /^https:\/\/hooks\.slack\.com\/…/ })
  await row.waitFor()
  expect(await row.getByRole('button').allTextContents()).toEqual([
    'Edit https://hooks.slack.com/…',
    'Test https://hooks.slack.com/…',
    'Remove https://hooks.slack.com/…',
  ])
  expect(await page.getByRole('dialog').count()).toBe(0)
  await own.service.delete(`/webhooks/endpoints/${(await list())[0].id}`, own.admin)
})

test('deliveries show what the receiver said, and are sent again', async () => {
  const { id } = await create({ url: 'https://example.com/hook' })
  const [first, second] = [await emit(own.service, own.tenant.org), await emit(own.service, own.tenant.org)]
  await setOutcome(own.service, first, { status: 'delivered', attempts: 1, code: 200, text: 'ok' })
  await setOutcome(own.service, second, { status: 'failed', attempts: 10, code: 503, text: 'Busy. '.repeat(100) })
  const { page } = await own.open(path)
  await page.getByRole('link', { name: 'Deliveries' }).click()
  const rows = page.getByRole('table', { name: 'Deliveries' }).locator('tbody tr')
  await rows.nth(1).waitFor()
  expect(await rows.nth(1).textContent()).toContain('Delivered1 attempt200ok')
  const failed = rows.nth(0)
  expect(await failed.textContent()).toContain('Failed10 attempts503Busy.')
  for (const [colorScheme, width] of [
    ['dark', 1_280],
    ['light', 360],
  ] as const) {
    await page.emulateMedia({ colorScheme })
    await page.setViewportSize({ width, height: 700 })
    const found = [await findOverflow(page), await findBarriers(page), await findSmallTargets(page)]
    expect(found).toEqual([0, [], []])
  }
  await failed.getByRole('button', { name: `Send again ${second}` }).click()
  await failed.getByText('Pending').waitFor()
  await page.getByRole('link', { name: 'All endpoints' }).click()
  await page.getByRole('heading', { name: 'Endpoints' }).waitFor()
  await own.service.delete(`/webhooks/endpoints/${id}`, own.admin)
})

test('an endpoint that the service disabled is said on the first page too, until it is enabled', async () => {
  const { id } = await create({ url: 'https://example.com/gone' })
  await own.service.services.db.sql`
    update webhook_endpoints set disabled_at = now(), disabled_reason = 'gone' where public_id = ${id}`
  const says = 'https://example.com/gone: the receiver answered 410 Gone. It gets no events.'
  const reader = await own.open('/', { key: await own.keyWith(['signals:read', 'webhooks:read']) })
  await reader.page.getByRole('alert').getByText(says).waitFor()
  expect(await reader.page.getByRole('button', { name: 'Enable' }).count()).toBe(0)
  expect(await findBarriers(reader.page)).toEqual([])
  const { page } = await own.open('/')
  await page.getByRole('alert').getByRole('link').click()
  await page.getByRole('heading', { name: 'Endpoints' }).waitFor()
  await page.getByRole('alert').getByText(says).waitFor()
  await page.getByRole('button', { name: 'Enable' }).click()
  await page.getByRole('alert').waitFor({ state: 'detached' })
  expect(await list()).toMatchObject([{ enabled: true, disabled_reason: null }])
})
