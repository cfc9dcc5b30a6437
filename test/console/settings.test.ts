import { expect, test } from 'bun:test'
import { sign } from '@octokit/webhooks-methods'
import { scopes } from '../../src/lib/scopes.ts'
import { eventually } from '../program.ts'
import { type TestConsole, useConsole } from './open.ts'

const own = useConsole()

const statusWith = async (key: string) => (await own.service.getHistory(own.tenant.prompt, key)).status

test('a key is made, shown once and copied, rotated and revoked', async () => {
  const permissions = ['clipboard-read', 'clipboard-write']
  const { page } = await own.open('/settings/keys', { permissions })
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('website')
  await page.getByLabel('Expires').selectOption('in 30 days')
  await page.getByRole('button', { name: 'Create key' }).click()
  const shown = page.getByRole('dialog', { name: 'New key created' })
  const key = (await shown.locator('code').textContent()) as string
  await shown.getByRole('button', { name: 'Copy the key' }).click()
  await shown.getByText('Copied', { exact: true }).waitFor()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(key)
  await shown.getByRole('button', { name: 'Done' }).click()
  await shown.waitFor({ state: 'detached' })
  const row = page.getByRole('row', { name: /^website/ }).first()
  expect(await row.textContent()).toContain('app')
  expect(await row.textContent()).toContain('Expires in 4 weeks')
  expect(await page.content()).not.toContain(key)
  expect(await statusWith(key)).toBe(200)

  await row.getByRole('button', { name: 'Rotate website' }).click()
  await page.getByLabel('Old key stays valid').selectOption('not at all')
  await page.getByRole('button', { name: 'Rotate', exact: true }).click()
  const rotated = page.getByRole('dialog', { name: 'Key rotated' })
  const second = (await rotated.locator('code').textContent()) as string
  // Escape does not close the only sight of a key before it was copied, however often it is pressed.
  for (let count = 0; count < 3; count++) await page.keyboard.press('Escape')
  await rotated.getByRole('button', { name: 'Copy the key' }).click()
  await rotated.getByText('Copied', { exact: true }).waitFor()
  await page.keyboard.press('Escape')
  await rotated.waitFor({ state: 'detached' })
  expect(await statusWith(second)).toBe(200)
  await eventually(() => statusWith(key), 401)

  await page.getByRole('button', { name: 'Revoke website' }).click()
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  await page.getByText('Revoked now').or(page.getByText('Revoked 1 second ago')).first().waitFor()
  await eventually(() => statusWith(second), 401)
})

test('the successor of the key of this session stays shown until it was read', async () => {
  const { page, requests } = await own.open('/settings/keys', {
    key: await own.keyWith([...scopes], 'rotated'),
    expectsTroubles: true,
  })
  await page.getByRole('button', { name: 'Rotate rotated' }).click()
  await page.getByLabel('Old key stays valid').selectOption('not at all')
  await page.getByRole('button', { name: 'Rotate', exact: true }).click()
  await page.getByRole('dialog', { name: 'Key rotated' }).waitFor()
  // An answer to the old key could be a 401, which ends the session and what it shows.
  expect(requests.at(-1)).toMatch(/^POST .*rotate$/)
  await page.getByRole('button', { name: 'Done' }).click()
  await eventually(() => requests.at(-1), 'GET /api/v1/keys')
})

test('a browser key is made with its origins and its limit; what is wrong is said in the form', async () => {
  const { page } = await own.open('/settings/keys', { expectsTroubles: true })
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('thumbs')
  await page.getByLabel('For').selectOption('browser')
  await page.getByLabel('Origins').fill('example.com')
  await page.getByLabel('Signals per month').fill('500')
  await page.getByRole('group', { name: 'Prompts' }).getByLabel('test').check()
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByRole('alert').getByText('Origins 1 must be an origin as browsers send it').waitFor()
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Create key')
  await page.getByLabel('Origins').fill('https://example.com\n\n https://*.example.org ')
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByRole('dialog', { name: 'New key created' }).getByRole('button', { name: 'Done' }).click()
  const { body } = await own.service.call('GET', '/api/v1/keys?limit=1', { key: own.admin })
  expect(body.data[0]).toMatchObject({
    name: 'thumbs',
    scopes: ['signals:write'],
    origins: ['https://example.com', 'https://*.example.org'],
    prompts: [own.tenant.prompt],
    monthly_limit: 500,
  })
  // It is edited in the same words; what is not changed stays, also what somebody else changes meanwhile.
  await page.getByRole('button', { name: 'Edit thumbs' }).click()
  const meanwhile = { monthly_limit: 700 }
  expect((await own.service.patch(`/keys/${body.data[0].id}`, own.admin, meanwhile)).status).toBe(200)
  await page.getByLabel('Name').fill('thumbs up')
  await page.getByRole('group', { name: 'Prompts' }).getByLabel('test').uncheck()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('row', { name: /^thumbs up/ }).waitFor()
  const changed = (await own.service.call('GET', '/api/v1/keys?limit=1', { key: own.admin })).body.data[0]
  expect(changed).toEqual({ ...body.data[0], ...meanwhile, name: 'thumbs up', prompts: null })
})

test('a key that is being created is not lost to Escape or Cancel', async () => {
  const { page } = await own.open('/settings/keys')
  const { promise, resolve } = Promise.withResolvers<void>()
  await page.route('**/api/v1/keys', async (route) => {
    if (route.request().method() === 'POST') await promise
    await route.fallback()
  })
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('slow')
  await page.getByRole('button', { name: 'Create key' }).click()
  for (let count = 0; count < 3; count++) await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Cancel' }).click()
  resolve()
  await page.getByRole('dialog', { name: 'New key created' }).waitFor()
})

test('the permissions and the life of a key are edited', async () => {
  await own.keyWith(['usage:read'], 'edited')
  const { page } = await own.open('/settings/keys')
  const row = page.getByRole('row', { name: /^edited/ })
  await row.getByRole('button', { name: 'Edit edited' }).click()
  await page.getByLabel('see signals').check()
  await page.getByLabel('Expires').selectOption('in 30 days')
  await page.getByRole('button', { name: 'Save' }).click()
  await row.getByText('Expires in 4 weeks').waitFor()
  expect(await row.textContent()).toContain('signals:readusage:read')
})

test('a key that expires creates keys that end with it', async () => {
  const expiresAt = new Date(Date.now() + 12 * 3_600_000)
  const { key } = await own.service.createKey(own.tenant, [...scopes], { expires_at: expiresAt })
  const { page } = await own.open('/settings/keys', { key })
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('short')
  const options = page.getByLabel('Expires').locator('option')
  expect(await options.allTextContents()).toEqual(['when this session ends'])
  await page.getByText('run prompt-signals keys create').waitFor()
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByRole('dialog', { name: 'New key created' }).waitFor()
  const { body } = await own.service.get('/keys?limit=1', own.admin)
  expect(body.data[0]).toMatchObject({ name: 'short', expires_at: expiresAt.toISOString() })
})

test('only what the key may do is offered', async () => {
  const seen = async (scopesOfKey: Parameters<TestConsole['keyWith']>[0], path: string) => {
    const { page } = await own.open(path, { key: await own.keyWith(scopesOfKey) })
    await page.locator('nav.subnav').waitFor()
    await page.locator('table').waitFor()
    const names = async (selector: string) => page.locator(selector).allInnerTexts()
    return {
      places: await names('nav.places a'),
      settings: await names('nav.subnav a'),
      buttons: (await names('main button')).map((text) => text.split('\n')[0]),
    }
  }
  expect(await seen(['prompts:read', 'usage:read'], '/settings/prompts')).toEqual({
    places: ['Usage', 'Settings'],
    settings: ['Prompts and links'],
    buttons: [],
  })
  expect(await seen(['keys:read'], '/settings/keys')).toEqual({
    places: ['Settings'],
    settings: ['Keys', 'Audit log'],
    buttons: [],
  })
  const { page } = await own.open('/settings/keys', {
    key: await own.keyWith(['keys:read', 'keys:write', 'signals:write']),
  })
  await page.getByRole('button', { name: 'New key' }).click()
  expect(await page.getByLabel('For').locator('option').allInnerTexts()).toEqual(['browser', 'Custom'])
  await page.getByLabel('For').selectOption('scopes')
  expect(await page.getByRole('group', { name: 'Permissions' }).locator('code').allInnerTexts()).toEqual([
    'signals:write',
    'keys:read',
    'keys:write',
  ])
})

test('a prompt is made, linked to its file and renamed', async () => {
  const { page } = await own.open('/prompts')
  await page.locator('tbody tr').first().waitFor()
  await page.getByRole('link', { name: 'Settings' }).click()
  await page.getByRole('link', { name: 'Prompts and links' }).click()
  await page.getByRole('button', { name: 'New prompt' }).click()
  await page.getByLabel('Name').fill('farewell')
  await page.getByRole('button', { name: 'Create prompt' }).click()
  const row = page.getByRole('row', { name: /farewell/ })
  await row.getByText('not linked').waitFor()
  await row.getByRole('button', { name: 'Edit farewell' }).click()
  await page.getByLabel('Name').fill('goodbye')
  await page.getByLabel('Repository').fill('acme/prompts')
  const path = `${'long/'.repeat(120)}goodbye.md`
  await page.getByLabel('File path').fill(path)
  await page.getByLabel('Live branch').fill('main')
  await page.getByRole('button', { name: 'Save' }).click()
  const changed = page.getByRole('row', { name: /goodbye/ })
  await changed.getByText('live branch main').waitFor()
  await page.getByRole('link', { name: 'Prompts', exact: true }).click()
  await changed.getByText('none recorded').waitFor()
  await page.goBack()
  // Archived, it leaves the list, and comes back.
  await changed.getByRole('button', { name: 'Archive goodbye' }).click()
  await changed.waitFor({ state: 'detached' })
  await page.getByLabel('Show').selectOption('archived')
  await changed.getByRole('button', { name: 'Restore goodbye' }).click()
  await page.getByText('No archived prompts').waitFor()
  await page.getByLabel('Show').selectOption('in use')
  await changed.getByText(path, { exact: true }).waitFor()
  await changed.getByText('acme/prompts, live branch main', { exact: true }).waitFor()
})

test('the recipe of the host of the prompts comes first', async () => {
  const tenant = await own.service.createTenant()
  const { key } = await own.service.createKey(tenant, [...scopes])
  const { page: empty } = await own.open('/settings/webhooks', { key })
  await empty.getByRole('link', { name: 'Recipes', exact: true }).waitFor()
  const linked = { name: 'a', repository: 'gitlab.example.com/acme/prompts', path: 'a.md' }
  expect((await own.service.post('/prompts', key, linked)).status).toBe(201)
  const { page } = await own.open('/settings/webhooks', { key })
  // On a narrow page, a line of the command never ends within the name of an option.
  for (let width = 320; width < 480; width += 16) {
    await page.setViewportSize({ width, height: 640 })
    expect(
      await page.locator('pre .option').evaluateAll((all) => all.map((one) => one.getClientRects().length)),
    ).toEqual([1])
  }
  const [guide, place] = (
    (await page.getByRole('link', { name: 'Recipe for GitLab CI' }).getAttribute('href')) as string
  ).split('#')
  expect(await (await fetch(`${own.service.url}${guide}`)).text()).toContain(`<h4 id="${place}">GitLab CI</h4>`)
})

test('the secret of the webhook is made, and another one only after a question', async () => {
  const { page } = await own.open('/settings/webhooks')
  await page.getByText('none yet').waitFor()
  await page.getByRole('button', { name: 'Generate secret' }).click()
  await page.locator('.secret').nth(1).waitFor()
  const [address, secret] = await page.locator('.secret code').allInnerTexts()
  expect(address).toBe(`${own.service.url}/webhooks/github/${own.tenant.org}`)
  expect(secret).toMatch(/^[\w-]{43}$/)
  await page.getByRole('link', { name: 'Audit log' }).click()
  await page.getByRole('row').nth(1).waitFor()
  // The actor is named, and no id is broken over lines.
  expect(await page.getByRole('row').nth(1).textContent()).toMatch(/console.*webhook/)
  const lines = await page.locator('.id').evaluateAll((all) => all.map((one) => one.offsetHeight < 25))
  expect(new Set(lines)).toEqual(new Set([true]))
  // Reached by a link, the new page has the focus on its heading, and going back leads to the one before.
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Audit log')
  await page.goBack()
  await page.getByRole('heading', { name: 'From git' }).waitFor()
  expect(page.url()).toBe(`${own.service.url}/settings/webhooks`)
  await page.getByText('none with this secret yet').waitFor()
  await page.getByText(address as string).waitFor()
  const ping = '{"zen":"Keep it logically awesome."}'
  const headers = {
    'content-type': 'application/json',
    'x-github-event': 'ping',
    'x-hub-signature-256': await sign(secret as string, ping),
  }
  await own.service.call('POST', `/webhooks/github/${own.tenant.org}`, { body: ping, headers })
  await page.reload()
  await page.getByText('Ping received: the webhook works.').waitFor()
  await page.getByRole('button', { name: 'Replace secret' }).click()
  const question = page.getByRole('dialog', { name: 'Replace secret' })
  await question.getByRole('button', { name: 'Cancel' }).click()
  await page.getByText('Ping received: the webhook works.').waitFor()
  await page.getByRole('button', { name: 'Replace secret' }).click()
  await question.getByRole('button', { name: 'Replace', exact: true }).click()
  await page.locator('.secret').nth(1).waitFor()
  expect(await page.locator('.secret code').nth(1).textContent()).not.toBe(secret as string)
})

test('a list goes on, page by page, each with an address of its own', async () => {
  for (let count = 0; count < 30; count++) await own.keyWith(['usage:read'], `many ${count}`)
  const { page, requests } = await own.open('/settings/keys')
  await page.getByText('many 29', { exact: true }).first().waitFor()
  expect(await page.locator('tbody tr').count()).toBe(25)
  const older = page.getByRole('link', { name: 'Older' })
  // The page is asked for as soon as the pointer is on its link, and not again when it is opened.
  await older.hover()
  await eventually(() => requests.filter((one) => one.includes('cursor=')).length, 1)
  await older.click()
  await page.getByText('many 4', { exact: true }).first().waitFor()
  expect(page.url()).toContain('?cursor=')
  expect(requests.filter((one) => one.includes('cursor=')).length).toBe(1)
  await page.reload()
  await page.getByText('many 4', { exact: true }).first().waitFor()
  await page.getByRole('link', { name: 'Newest' }).click()
  await page.getByText('many 29', { exact: true }).first().waitFor()
})
