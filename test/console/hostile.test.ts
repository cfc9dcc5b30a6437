// Texts that others wrote, at their worst: none runs, none breaks the page, and none leads anywhere but to the web.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { consolePaths } from '../../src/http/console_paths.ts'
import { findOverflow, type Watched } from '../browser.ts'
import { inFullRun } from '../full.ts'
import { eventually } from '../program.ts'
import { entry } from '../service.ts'
import { emit, setOutcome } from '../webhooks/emit.ts'
import { daysAgo } from './evidence.ts'
import { useConsole } from './open.ts'

const script = '<script>window.ran=1</script><img src=x onerror="window.ran=1"><svg onload="window.ran=1">'
const rightToLeft = '\u202Egnisrever \u2067isolate \u200F'
const endless = 'W'.repeat(180)
const template = '{{constructor.constructor("window.ran=1")()}}'
const texts = [script, rightToLeft, endless, template, 'javascript:window.ran=1', '"><style>*{display:none}</style>']

const own = useConsole()
const ids: string[] = []
let endpoint: string
/** One window for all pages: it has the files of the console after the first of them. */
let window: Watched

const post = async (path: string, json: object) => {
  const { status, body } = await own.service.call('POST', `/api/v1${path}`, { key: own.admin, json })
  expect(status).toBe(201)
  return body.data
}

beforeAll(async () => {
  const { db } = own.service.services
  await db.sql`update organisations set name = ${`${script}${rightToLeft}${endless}`} where public_id = ${own.tenant.org}`
  endpoint = (await post('/webhooks/endpoints', { url: `https://example.com/${endless}` })).id
  for (const [index, text] of texts.entries()) {
    const event = await emit(own.service, own.tenant.org)
    await setOutcome(own.service, event, { status: 'failed', attempts: 10, code: 500, text: text.repeat(5) })
    const { id } = await post('/prompts', { name: text })
    ids.push(id)
    await db.sql`update prompts set repository = ${`x/${index}`}, path = ${text} where public_id = ${id}`
    await post('/keys', { name: text, scopes: ['usage:read'] })
    await own.service.addHistory(id, [
      entry({
        commit_sha: text.slice(0, 100),
        user: { name: text, email: 'a@example.com' },
        branch_name: text,
        created_at: daysAgo(20),
      }),
      entry({
        action: 'pr_merged',
        commit_sha: `${index}c48cce2e2d7fbdea1afc51c7c6ad26b0d94e11`,
        user: { name: text, email: 'b@example.com' },
        branch_name: text,
        created_at: daysAgo(3),
        pr_number: 2_147_483_647,
        pr_url: 'https://example.com/pull/1"onmouseover="window.ran=1',
      }),
    ])
    const metadata = { [text]: text, deep: { [text]: [text, { [text]: text }] }, word: 'W'.repeat(10_000) }
    await post(`/prompts/${id}/signals`, { value: 'negative', metadata })
    await post(`/prompts/${id}/signals`, { value: 'positive', metadata: { model: text } })
  }
  // No route lets such an address in; a console must not trust that.
  await db.sql`update history_entries set pr_url = 'javascript:window.ran=1' 
    where pr_number is not null and id % 2 = 0 and prompt_id in (select id from prompts where public_id = any (${ids}))`
  window = await own.open('/usage')
  await window.page.locator('.answer').waitFor()
  await allAnswered(0)
})

afterAll(() => window?.page.context().close())

/** Waits for the answers to all requests after the first `before`: the next page would abort them. */
const allAnswered = (before: number) =>
  eventually(async () => window.requests.length - before - Number(await window.page.evaluate(countAnswers)), 0)
const countAnswers = `performance.getEntriesByType('resource').filter(({ name }) => name.includes('/api/v1/')).length`

/** What is on a page once everything is folded out, on a phone and on a large screen. */
async function provoke(address: string) {
  const { page } = window
  // Ends the page before, so that nothing it still asks for is counted for this one.
  await page.goto('about:blank')
  const [troublesBefore, requestsBefore] = [window.troubles.length, window.requests.length]
  await page.setViewportSize({ width: 360, height: 700 })
  await page.goto(own.service.url + address)
  await page.locator('nav.places a').first().waitFor()
  await page.locator('.pending, .skeleton').first().waitFor({ state: 'detached' })
  await page.evaluate(`for (const one of document.querySelectorAll('main details')) one.open = true`)
  const found = await page.evaluate(`({
    ran: window.ran,
    foreign: [...document.querySelectorAll('script, img, style, iframe')]
      .map((one) => one.outerHTML).filter((html) => !/src="[^"]*console\\/main-/.test(html)),
    links: [...document.links].map((link) => link.protocol).filter((protocol) => !/^https?:$/.test(protocol)),
    handlers: [...document.querySelectorAll('*')]
      .flatMap((one) => one.getAttributeNames()).filter((name) => name.startsWith('on')),
    hidden: getComputedStyle(document.querySelector('main')).display === 'none',
    turned: [...document.querySelectorAll('.text, .answer')].filter((one) => /[\u202A-\u202E\u2066-\u2069]/.test(one.textContent)).length,
    direction: getComputedStyle(document.querySelector('main')).direction,
  })`)
  const narrow = await findOverflow(page)
  await page.setViewportSize({ width: 1_100, height: 700 })
  const overflow = [narrow, await findOverflow(page)]
  await allAnswered(requestsBefore)
  return { found, overflow, troubles: window.troubles.slice(troublesBefore) }
}

const harmless = {
  found: { foreign: [], links: [], handlers: [], hidden: false, turned: 0, direction: 'ltr' },
  overflow: [0, 0],
  troubles: [],
}

/** The pages of a prompt show one text each: in a full run all of them, otherwise two, so that each is on some page. */
const addresses = () => {
  const rest = [...ids]
  const shown = () => inFullRun(ids, rest.splice(0, 2))
  return consolePaths.flatMap((path) => {
    if (path === '/settings/endpoints') return [path, `${path}?endpoint=${endpoint}`]
    if (path === '/signals') return shown().map((id) => `/signals?prompt=${id}`)
    return path.includes(':prompt_id') ? shown().map((id) => path.replace(':prompt_id', id)) : [path]
  })
}

test('on every page, at every width', async () => {
  for (const address of addresses()) {
    expect({ address, ...(await provoke(address)) }).toEqual({ address, ...harmless })
  }
}, 300_000)

test('in the address: every parameter of a page', async () => {
  const value = encodeURIComponent(script)
  const [id] = ids
  for (const address of [
    `/?find=${value}&author=${value}&verdict=${value}&range=${value}`,
    `/prompts?find=${value}&sort=${value}&show=${value}`,
    `/prompts/${id}?branch=${value}&split=${value}&range=${value}&by=${value}&since=${value}`,
    `/prompts/${id}/compare?head=1&base=2`,
    `/signals?prompt=${id}&metadata.model=${value}&metadata.${value}=${value}`,
  ]) {
    const { found, overflow } = await provoke(address)
    expect({ address, found, overflow }).toEqual({ address, found: harmless.found, overflow: [0, 0] })
  }
})

test('a script that got into the page all the same would not run', async () => {
  const { page } = await own.open('/settings/keys', { expectsTroubles: true })
  await page.locator('tbody tr').first().waitFor()
  const outcome = await page.evaluate(`(() => {
    const outcome = []
    try { document.body.insertAdjacentHTML('beforeend', '<b>x</b>'); outcome.push('inserted') } catch (error) { outcome.push(error.name) }
    const script = document.createElement('script')
    try { script.text = 'window.ran = 1'; document.body.append(script) } catch (error) { outcome.push(error.name) }
    return [...outcome, window.ran ?? 'never ran']
  })()`)
  expect(outcome).toEqual(['TypeError', 'TypeError', 'never ran'])
})
