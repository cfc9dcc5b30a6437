import { beforeAll, expect, test } from 'bun:test'
import { findBarriers, openTab } from '../browser.ts'
import { createOperator, eventually } from '../program.ts'
import { serveInTest, useProgram } from '../use.ts'
import { useWindows } from './open.ts'

const openIn = useWindows()
// What the server has logged is searched for keys, too.
const { operator, server, settings, tenant } = useProgram()

beforeAll(() => {
  Object.assign(operator, createOperator({ ...settings, PUBLIC_URL: server.url }))
})

test('a link of the command opens signed in, and its key leaves the address at once and reaches no server but in the header', async () => {
  const { link } = await operator.one('console', '--org', tenant.org, '--admin')
  const { page, requests } = await openIn(server.url)
  const addresses: string[] = []
  page.on('request', (request) => addresses.push(`${request.url()} ${request.headers().referer ?? ''}`))
  await page.goto(link.replace('/#', '/settings/keys#'))
  await page.getByRole('row').nth(1).waitFor()
  expect(page.url()).toBe(`${server.url}/settings/keys`)
  expect(addresses.filter((address) => /psk_\w{36}/.test(address))).toEqual([])
  const kept = await page.evaluate('[document.cookie, { ...localStorage }, { ...sessionStorage }, history.length]')
  const key = link.split('#key=')[1] as string
  expect(kept).toEqual(['', {}, { 'prompt-signals key /': key }, expect.any(Number)])
  expect(requests).toEqual(['GET /api/v1/key', 'GET /api/v1/keys'])
  await page.getByText('Key “console”').waitFor()
  // Reloaded it is signed in on, and another browser knows nothing of it.
  await page.reload()
  await page.getByRole('row').nth(1).waitFor()
  const other = await openIn(server.url)
  await other.page.goto(server.url)
  await other.page.getByRole('button', { name: 'Sign in' }).waitFor()
  expect(other.requests).toEqual([])
})

test('a new tab is signed in like the tab that was used last, and signing out ends all tabs', async () => {
  const window = await openIn(server.url)
  const { page } = window
  await page.goto(`${server.url}/settings/prompts#key=${tenant.key}`)
  await page.getByText('Key “test”').waitFor()
  const second = await openTab(window, server.url)
  await second.page.goto(`${server.url}/settings/prompts`)
  await second.page.getByText('Key “test”').waitFor()
  // Of two keys, a new tab gets the one that its user comes from.
  const { link } = await operator.one('console', '--org', tenant.org)
  await second.page.goto(link)
  await second.page.getByText('Key “console”').waitFor()
  for (const [tab, name] of [
    [page, 'Key “test”'],
    [second.page, 'Key “console”'],
  ] as const) {
    await tab.locator('h1').click()
    const third = await openTab(window, server.url)
    await third.page.goto(`${server.url}/settings/prompts`)
    await third.page.getByText(name).waitFor()
    await third.page.close()
  }
  await page.getByText('Key “test”').click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  for (const tab of [page, second.page]) {
    await tab.getByLabel('API key').waitFor()
    expect(await tab.evaluate('sessionStorage.length')).toBe(0)
  }
  const last = await openTab(window, server.url)
  await last.page.goto(server.url)
  await last.page.getByLabel('API key').waitFor()
})

test('a link to another organisation asks before it replaces the one that is signed in, in any tab', async () => {
  const window = await openIn(server.url, { expectsTroubles: true })
  const { page } = window
  await page.goto(`${server.url}/settings/prompts#key=${tenant.key}`)
  await page.getByText('Key “test”').waitFor()
  const { id: org } = await operator.one('orgs', 'create', '--name', 'Other', '--plan', 'free')
  const { link } = await operator.one('console', '--org', org)
  const key = link.split('#key=')[1]
  const tabs = [page, (await openTab(window, server.url)).page]
  for (const tab of tabs) {
    await tab.goto(link)
    await tab.getByRole('heading', { name: 'Switch organisation?' }).waitFor()
    expect(await tab.locator('dl').textContent()).toBe(
      `You are signed in toTest${tenant.org}This link signs in toOther${org}`,
    )
    expect(await findBarriers(tab)).toEqual([])
    expect(await tab.evaluate(`sessionStorage.getItem('prompt-signals key /')`)).toBe(tenant.key)
    await tab.getByRole('button', { name: 'Stay in Test' }).click()
    await tab.getByText('Key “test”').waitFor()
  }
  await page.goto(link)
  await page.getByRole('button', { name: 'Switch to Other' }).click()
  await page.getByText('Key “console”').waitFor()
  expect(await page.evaluate(`sessionStorage.getItem('prompt-signals key /')`)).toBe(key)
  // A key that is rejected does not end the session.
  await page.goto(`${server.url}/#key=psk_${'0'.repeat(36)}`)
  await page.getByRole('alert').getByText('Invalid key').waitFor()
  await page.getByText('Key “console”').waitFor()
})

test('a pasted key signs in, and signing out forgets it', async () => {
  const { page } = await openIn(server.url)
  await page.goto(`${server.url}/settings/prompts`)
  await page.getByLabel('API key').fill(` ${tenant.key} `)
  await page.keyboard.press('Enter')
  await page.getByRole('row').nth(1).waitFor()
  await eventually(() => page.title(), 'Prompts and links · Test · prompt-signals')
  await page.getByText('Key “test”').click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('API key').waitFor()
  expect(await page.evaluate('sessionStorage.length')).toBe(0)
  await page.reload()
  await page.getByLabel('API key').waitFor()
})

test('a key that is not accepted is forgotten, with a word about it', async () => {
  const { page } = await openIn(server.url, { expectsTroubles: true })
  await page.goto(`${server.url}/#key=psk_${'0'.repeat(36)}`)
  await page.getByRole('alert').getByText('Invalid key').waitFor()
  expect(await page.evaluate('sessionStorage.length')).toBe(0)
  // As the list of keys shows one, which no header can hold.
  await page.goto(`${server.url}/usage`)
  await page.getByLabel('API key').fill('psk_D6yshcqf…')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('Invalid key').waitFor()
})

test('a link may be opened in a tab that is signed in, with another key or by the same link', async () => {
  const { page } = await openIn(server.url)
  await page.goto(`${server.url}/settings/prompts#key=${tenant.key}`)
  await page.getByText('Key “test”').waitFor()
  const { link } = await operator.one('console', '--org', tenant.org)
  for (let count = 0; count < 2; count++) {
    await page.goto(link.replace('/#', '/settings/keys#'))
    await eventually(() => page.url(), `${server.url}/settings/keys`)
    await page.getByRole('row').nth(1).waitFor()
    await page.getByText('Key “console”').waitFor()
  }
  await page.getByRole('link', { name: 'Audit log' }).click()
  await page.getByRole('row').nth(1).waitFor()
  await page.getByText('Key “console”').waitFor()
})

test('the documentation is one click away and leads back, still signed in', async () => {
  const { page } = await openIn(server.url)
  await page.goto(`${server.url}/settings/prompts#key=${tenant.key}`)
  await page.getByRole('row').nth(1).waitFor()
  await page.getByRole('link', { name: 'Docs' }).click()
  await page.getByRole('link', { name: 'Interface', exact: true }).click()
  await page.locator('.opblock').first().waitFor()
  await page.getByRole('link', { name: 'Console' }).click()
  await page.getByText('Key “test”').waitFor()
  await page.getByText('No change has gone live yet').waitFor()
  expect(page.url()).toBe(`${server.url}/`)
})

test('the command makes a key that expires in 12 hours and changes nothing unless asked to', async () => {
  const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT/)
  const made = await operator.one('console', '--org', tenant.org)
  expect(made).toEqual({
    link: expect.stringMatching(new RegExp(`^${server.url}/#key=psk_\\w{36}$`)),
    key: expect.stringMatching(/^key_/),
    expires_at: time,
  })
  const lives = new Date(made.expires_at).getTime() - Date.now()
  expect(Math.abs(lives - 12 * 3_600_000)).toBeLessThan(60_000)
  const keys = await operator.json('keys', 'list', '--org', tenant.org)
  const scopes = keys.find(({ id }) => id === made.key)?.scopes as string[]
  expect(scopes).toEqual(['history:read', 'signals:read', 'prompts:read', 'usage:read', 'keys:read', 'webhooks:read'])
  const off = createOperator({ ...settings, CONSOLE: 'off' })
  expect(await off.errorLine('console', '--org', tenant.org)).toBe('The console is turned off: CONSOLE is off.')
})

test('the console works below a path of a larger site', async () => {
  const site = serveInTest(({ method, headers, url }) => {
    const { pathname, search } = new URL(url)
    if (!pathname.startsWith('/tools/')) return new Response('another page', { status: 404 })
    // Passed on as it is, since its headers say how it is compressed.
    return fetch(`${server.url}${pathname.slice('/tools'.length)}${search}`, { method, headers, decompress: false })
  })
  const { page } = await openIn(site)
  const { link } = await operator.one('console', '--org', tenant.org)
  await page.goto(`${site}/tools/settings/keys#key=${link.split('#key=')[1]}`)
  await page.getByRole('row').nth(1).waitFor()
  await page.getByRole('link', { name: 'Audit log' }).click()
  await page.getByRole('row').nth(1).waitFor()
  expect(page.url()).toBe(`${site}/tools/settings/audit`)
  await page.reload()
  await page.getByRole('row').nth(1).waitFor()
})
