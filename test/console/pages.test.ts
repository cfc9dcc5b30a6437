import { beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { consolePaths } from '../../src/http/console_paths.ts'
import { setStoreText } from '../../src/orgs/manage.ts'
import { findBarriers, findOverflow, findSmallTargets } from '../browser.ts'
import { addSignals, deployed, merged } from '../impact/history.ts'
import { eventually } from '../program.ts'
import { postText } from '../signals/fixtures.ts'
import { addEvidence, daysAgo } from './evidence.ts'
import { useConsole } from './open.ts'

const own = useConsole()
const clientPath = join(import.meta.dir, '../../clients/typescript/src/index.ts')
let promptPath: string

beforeAll(async () => {
  promptPath = `/prompts/${own.tenant.prompt}`
  await addEvidence(own.service, own.tenant.prompt)
  expect((await own.service.postSignal(own.tenant.prompt, own.tenant.key)).status).toBe(201)
  expect((await own.service.post('/webhooks/endpoints', own.admin, { url: 'https://example.com' })).status).toBe(201)
})

/** Waits until the page has what it asked for. */
const contentOf: Record<(typeof consolePaths)[number], string> = {
  '/': '.interval',
  '/prompts': 'tbody tr',
  '/prompts/:prompt_id': '.u-over',
  '/prompts/:prompt_id/compare': '.interval',
  '/signals': 'tbody tr',
  '/usage': '.day-bar',
  '/settings': 'tbody tr',
  '/settings/keys': 'tbody tr',
  '/settings/prompts': 'tbody tr',
  '/settings/webhooks': 'dl',
  '/settings/endpoints': 'tbody tr',
  '/settings/audit': 'tbody tr',
}

test.each([...consolePaths])(
  '%s opens with three requests at most, complains of nothing, fits a phone, and has no barriers',
  async (path) => {
    const { page, requests } = await own.open(path.replace(':prompt_id', own.tenant.prompt))
    // The page follows the reader's choice without being loaded again; the chart is drawn again.
    for (const [colorScheme, width] of [
      ['dark', 1_280],
      ['light', 360],
    ] as const) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 700 })
      await page.locator(contentOf[path]).first().waitFor()
      await page.locator('nav.places a').first().waitFor()
      expect(await findOverflow(page), colorScheme).toBe(0)
      expect(await findBarriers(page), colorScheme).toEqual([])
      expect(await findSmallTargets(page), colorScheme).toEqual([])
    }
    expect(new Set(requests).size).toBe(requests.length)
    expect(requests.length).toBeLessThanOrEqual(3)
    expect(await page.locator('h1').count()).toBe(1)
  },
)

test('a prompt says in a sentence what its last change did, with the interval and the count', async () => {
  const { page } = await own.open(promptPath)
  const answer = page.locator('.answer')
  await answer.waitFor()
  expect(await answer.textContent()).toMatch(
    /^▲ Better since PR #7: \d\d\.\d → \d\d\.\d\u00a0% positive \(\+[23]\d\.\d points, between \+\d\d?\.\d and \+\d\d\.\d\)\.$/,
  )
  const figures = (await answer.textContent())?.match(/\d+\.\d/g)?.map(Number) as number[]
  expect((figures[1] as number) - (figures[0] as number)).toBeCloseTo(figures[2] as number, 5)
  await page.getByText('#7 by Ada, 373 signals').waitFor()
  // What kind of comparison it is stands beside it, and leads to why that matters.
  await page.getByText('Before and after, not an experiment').waitFor()
  await page.getByRole('link', { name: 'Why that matters' }).click()
  await page.getByText('To know what the change itself does').waitFor()
})

test('the first page says what all changes did, each leading to itself and to its signals, and filters them', async () => {
  const { key, ...tenant } = await own.service.createTenant()
  await addEvidence(own.service, tenant.prompt)
  const silent = await own.service.createPrompt(tenant, 'silent')
  await own.service.addHistory(silent, [deployed('c'.repeat(40), daysAgo(1))])
  const { page } = await own.open('/', { key })
  await page.getByText('1 better, 1 without an earlier one').waitFor()
  const rows = page.locator('tbody tr')
  expect(await rows.first().locator('td').allTextContents()).toEqual([
    expect.stringMatching(/^#7test · Ada, 10 days ago$/),
    expect.stringMatching(/^▲ Better since PR #7: /),
    '',
    '372',
  ])
  expect(await rows.count()).toBe(2)
  await page.getByText('1 change has no signals.').waitFor()
  await page.getByLabel('Verdict').selectOption('worse')
  await page.getByText('No changes match').waitFor()
  await page.getByLabel('Verdict').selectOption('better')
  await eventually(() => rows.count(), 1)
  await page.getByRole('link', { name: '372' }).click()
  await page
    .locator('.chips button')
    .getByText(/^of change \d+$/)
    .waitFor()
  await page.goBack()
  await page.getByRole('link', { name: '#7' }).click()
  await page.getByRole('heading', { name: '#7', exact: true }).waitFor()
  await page.getByText('days with signals since it went live').waitFor()
})

test('without a prompt, every page says how to bring them from git, with the id of the organisation', async () => {
  const { key, org, prompt } = await own.service.createTenant()
  await own.service.services.db.sql`update prompts set archived = true where public_id = ${prompt}`
  for (const path of ['/', '/prompts', '/signals']) {
    const { page } = await own.open(path, { key })
    await page.getByText(`prompt-signals sync --org ${org} --create 'prompts/**/*.md'`).waitFor()
    // This key may create none in the settings.
    expect(await page.locator('main').getByRole('link', { name: 'settings' }).count()).toBe(0)
  }
})

test('the list of prompts has the rate with its interval and count, the verdict and the last change', async () => {
  const { page } = await own.open('/prompts')
  const row = page.getByRole('row', { name: /^test/ })
  await row.waitFor()
  expect((await row.locator('td').allTextContents()).slice(2)).toEqual([
    expect.stringMatching(/^71\s% \(68–74\s%\)1,0\d\d signals$/),
    expect.stringMatching(/^▲ better\+[23]\d\.\d points$/),
    '#710 days ago, merged #7 by Ada',
  ])
})

test('search and sort are over all prompts, and not over those of the first page', async () => {
  const { key, org } = await own.service.createTenant()
  await own.service.services.db.sql`
    insert into prompts (public_id, organisation_id, name, created_at)
    select 'pmt_many' || n, o.id, 'many ' || n, now()
    from organisations o, generate_series(1, 120) n
    where o.public_id = ${org}`
  const { page, requests } = await own.open('/prompts?sort=name', { key })
  const names = () => page.locator('tbody tr td:first-child a').allTextContents()
  await eventually(async () => (await names()).slice(0, 2), ['many 1', 'many 2'])
  expect(requests.length).toBeLessThanOrEqual(3)
  await page.getByRole('link', { name: 'Next page' }).click()
  await eventually(async () => (await names()).slice(-2), ['many 120', 'test'])
  // What is looked for is on the first page again, though it is the oldest of all prompts.
  await page.getByLabel('Sort by').selectOption('newest')
  await eventually(async () => (await names()).slice(0, 2), ['many 120', 'many 119'])
  await page.getByRole('link', { name: 'Next page' }).click()
  await eventually(async () => (await names()).length, 21)
  await page.getByLabel('Search').fill('TES')
  await eventually(names, ['test'])
  // Both are in the address, so that the page can be reloaded and shared.
  await page.reload()
  await eventually(names, ['test'])
  expect(page.url()).toBe(`${own.service.url}/prompts?sort=newest&find=TES`)
  await page.getByLabel('Search').fill('nothing')
  await page.getByText('No prompts match “nothing”').waitFor()
  // A link to all of them takes what was looked for away, and the way back brings it again.
  await page.getByRole('link', { name: 'Prompts', exact: true }).click()
  await eventually(() => page.getByLabel('Search').inputValue(), '')
  await eventually(async () => (await names()).length, 100)
  await page.goBack()
  await eventually(() => page.getByLabel('Search').inputValue(), 'nothing')
})

test('of many changes each has its flag, its place in the list and its verdict, and what is left out is said', async () => {
  const { id } = (await own.service.post('/prompts', own.admin, { name: 'busy' })).body.data
  const changes = Array.from({ length: 160 }, (_, index) => ({
    ...(index % 4 === 3 ? deployed(`${1_000_000 + index}`, daysAgo(25 - index / 8)) : {}),
    ...(index % 4 === 3 ? {} : merged(`${1_000_000 + index}`, daysAgo(25 - index / 8), 1_000 + index)),
  })) as ReturnType<typeof merged>[]
  for (let start = 0; start < changes.length; start += 40) {
    await own.service.addHistory(id, changes.slice(start, start + 40))
  }
  await addSignals(own.service, id, [
    { value: 'positive', at: daysAgo(24.95) },
    { value: 'positive', at: daysAgo(1) },
  ])
  const { page } = await own.open(`/prompts/${id}`)
  const flags = page.locator('.flag')
  const flagged = () => flags.evaluateAll((all) => all.flatMap((one) => one.title.split('\n')).length)
  const oldest = async () =>
    (await page.getByLabel('Earlier').locator('option').allInnerTexts()).find((text) => text.startsWith('#1000 ')) ?? ''
  await eventually(flagged, 149)
  const boxes = await flags.evaluateAll((all) => all.map((one) => one.getBoundingClientRect()))
  expect(boxes.filter(({ left }, index) => left < (boxes[index - 1]?.right ?? 0) - 1)).toEqual([])
  await page.getByText('11 older changes in this range have no flag.').waitFor()
  await page.getByRole('navigation', { name: 'Pages of changes' }).getByText('1 of 4').waitFor()
  // A flag leads to its row on whatever page of the list.
  await flags.first().click()
  const target = page.locator('tr:target')
  await target.waitFor()
  expect(await target.getAttribute('id')).toBe(new URL(page.url()).hash.slice(1))
  expect(page.url()).toContain('page=3')
  // With a shorter time all have one, and nothing is left out.
  await page.getByRole('button', { name: '7 d' }).click()
  await page.getByText('older changes of this time').waitFor({ state: 'detached' })
  await page.getByLabel('Time', { exact: true }).selectOption('any time')
  await page.getByLabel('Action').selectOption('deployed')
  const rows = page.getByRole('table', { name: 'Changes' }).locator('tbody tr')
  await eventually(() => rows.count(), 40)
  await page.getByLabel('Action').selectOption('everything')
  await page.getByRole('link', { name: 'Older' }).click()
  await page.getByRole('navigation', { name: 'Pages of changes' }).getByText('2 of 4').waitFor()
  // All of these went live, and so have a verdict.
  await eventually(() => rows.filter({ hasText: 'undecided' }).count(), 50)
  // The newest and the oldest are compared, though they are pages apart.
  await page.getByRole('link', { name: 'Compare' }).click()
  const choices = page.getByRole('navigation', { name: 'Pages of changes' })
  for (const number of [2, 3, 4]) {
    await choices.getByRole('link', { name: 'Older' }).click()
    await choices.getByText(`${number} of 4`).waitFor()
  }
  await page.getByLabel('Earlier').selectOption({ label: await oldest() })
  await eventually(
    async () => (await rows.allTextContents()).map((text) => text.slice(0, 12)),
    ['deployed 100', 'merged #1000'],
  )
})

test('the chart is walked by the arrow keys, zoomed by the pointer, and is a table, too', async () => {
  const { page, requests } = await own.open(promptPath)
  const chart = page.getByRole('slider', { name: 'Signals over time' })
  // Not with the chart: they have a request of their own.
  await eventually(() => page.locator('.flag').allTextContents(), ['8f14e45', '#7'])
  await chart.focus()
  await page.keyboard.press('End')
  const today = new Intl.DateTimeFormat('en-US', {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    year: 'numeric',
  }).format(new Date())
  await eventually(async () => (await chart.getAttribute('aria-valuetext'))?.startsWith(today), true)
  await page.keyboard.press('ArrowLeft')
  await eventually(
    async () => (await chart.getAttribute('aria-valuetext'))?.endsWith('90\u00a0% positive, of 40 signals'),
    true,
  )
  await page.getByText('View as table').click()
  const rows = page.getByRole('table', { name: 'Signals over time' }).getByRole('row')
  expect(await rows.count()).toBe(31)

  const box = (await page.locator('.u-over').boundingBox()) as { x: number; y: number; width: number }
  await page.mouse.move(box.x + box.width * 0.7, box.y + 50)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.9, box.y + 50, { steps: 5 })
  await page.mouse.up()
  await eventually(() => /\?since=.*&until=/.test(page.url()), true)
  await eventually(async () => (await rows.count()) < 12, true)
  expect(requests.filter((one) => one.includes('/stats')).length).toBe(2)
  await page.getByRole('button', { name: '7 d' }).click()
  await eventually(() => page.url(), `${own.service.url}${promptPath}?range=7d`)
})

test('a chart of one hour has no flags of other hours, and one of days has also one of 25 hours', async () => {
  const { key, prompt } = await own.service.createTenant()
  await addSignals(own.service, prompt, [{ value: 'positive', at: '2025-11-02T12:30:00Z' }])
  await own.service.addHistory(prompt, [deployed('8f14e45', '2025-11-02T14:30:00Z')])
  const openRange = (since: string, until: string) =>
    own.open(`/prompts/${prompt}?${new URLSearchParams({ since, until })}`, { key, timezoneId: 'America/New_York' })
  const { page: hour } = await openRange('2025-11-02T12:00:00Z', '2025-11-02T13:00:00Z')
  await hour.locator('.u-over').waitFor()
  await hour.getByRole('slider').press('End')
  const reading = hour.locator('.reading').getByText('1 positive')
  await reading.waitFor()
  const drawn = await hour.locator('.u-over').elementHandle()
  await hour.emulateMedia({ colorScheme: 'dark' })
  await drawn?.waitForElementState('hidden')
  await hour.locator('.u-over').waitFor()
  // What is read stays when the chart is drawn again, as it is when its flags arrive.
  expect(await reading.isVisible()).toBe(true)
  expect(await hour.locator('.flag').count()).toBe(0)
  const { page: days } = await openRange('2025-10-20T04:00:00Z', '2025-11-02T04:10:00Z')
  await days.getByText('View as table').click()
  await days.getByRole('cell', { name: 'Sun, Nov 2, 2025' }).waitFor()
})

test('changes are filtered by action, time and branch, and split by metadata', async () => {
  const { page } = await own.open(promptPath)
  const rows = () => page.getByRole('table', { name: 'Changes' }).locator('tbody tr').allTextContents()
  await eventually(async () => (await rows()).length, 2)
  await page.getByLabel('Action').selectOption('deployed')
  await eventually(async () => (await rows()).map((text) => text.slice(0, 16)), ['deployed 8f14e45'])
  await page.getByLabel('Time', { exact: true }).selectOption('chart')
  await page.getByRole('button', { name: '7 d' }).click()
  await page.getByText('No changes match').waitFor()
  await page.getByRole('button', { name: '90 d' }).click()
  await eventually(async () => (await rows()).length, 1)
  await page.getByLabel('Branch').fill('develop')
  await page.keyboard.press('Enter')
  await page.getByText('No changes match').waitFor()
  await page.getByLabel('Field').fill('session')
  await page.getByRole('button', { name: 'Split' }).click()
  await page.getByRole('table', { name: 'Signals by session' }).getByText('71 %').waitFor()
})

test('the reasons of negative signals lead to the signals that have them', async () => {
  const { key, prompt } = await own.service.createTenant()
  const votes: [string, string[] | string][] = [
    ['negative', ['Too long', '<b>Wrong</b>']],
    ['negative', ['<b>Wrong</b>']],
    ['positive', ['Clear']],
  ]
  for (const [value, reasons] of votes) {
    const body = { value, metadata: { reasons } }
    expect((await own.service.post(`/prompts/${prompt}/signals`, key, body)).status).toBe(201)
  }
  const { page, requests } = await own.open(`/prompts/${prompt}?range=7d`, { key })
  const items = page.locator('.reasons li')
  await items.first().waitFor()
  expect(await items.allTextContents()).toEqual(['<b>Wrong</b>2 signals', 'Too long1 signal'])
  expect([await findBarriers(page), await findSmallTargets(page)]).toEqual([[], []])
  expect(requests.filter((one) => one.includes('/stats'))).toHaveLength(1)
  await items.getByRole('link', { name: 'Too long' }).click()
  await page.getByRole('heading', { name: 'Signals' }).waitFor()
  await page.locator('tbody tr').first().waitFor()
  expect(await page.locator('tbody tr').allTextContents()).toEqual([expect.stringContaining('Too long')])
})

test('any two changes are compared, and the signals of a change are one click away', async () => {
  const { page } = await own.open(promptPath)
  await page.getByRole('link', { name: 'Compare' }).click()
  await page.locator('.answer').getByText('Better').waitFor()
  expect(await page.getByText('is the older of the two').count()).toBe(0)
  const later = page.getByLabel('Later')
  const [first, second] = await later
    .locator('option')
    .evaluateAll((options) => options.map((one) => (one as unknown as { value: string }).value))
  await later.selectOption(second as string)
  await page.getByText('Choose two different changes').waitFor()
  await page.getByLabel('Earlier').selectOption(first as string)
  await page.locator('.answer').getByText('Worse').waitFor()
  // A comparison that is read backwards is said.
  await page.getByText('“Later” is the older of the two').waitFor()
  await page.getByRole('link', { name: '373 signals' }).click()
  await page.getByRole('heading', { name: 'Signals' }).waitFor()
  await page.locator('tbody tr').first().waitFor()
  expect(await page.locator('.chips button').count()).toBe(1)
})

test('a change that is opened shows how its difference moved, and the health of its data', async () => {
  const { page } = await own.open(promptPath)
  const rows = page.getByRole('table', { name: 'Changes' }).locator('tbody tr')
  await rows.first().getByRole('link', { name: 'Details' }).click()
  const detail = page.locator('main')
  await detail.locator('polyline').waitFor()
  expect(await detail.locator('h1').evaluate((heading) => heading === heading.ownerDocument.activeElement)).toBe(true)
  await detail.getByText(/^▲ Better since PR #7: /).waitFor()
  await detail.getByText(/1\d days with signals since it went live, 1\d days before\./).waitFor()
  await detail.getByText('None of its signals names its commit').waitFor()
  await detail.getByText('View as table').click()
  const days = detail.getByRole('table', { name: 'Difference over time' }).locator('tbody tr')
  expect(await days.first().textContent()).toMatch(/▲ better\+\d\d\.\d \(\+\d\d?\.\d to \+\d\d\.\d\)/)
  expect(await findBarriers(page)).toEqual([])
  await page.reload()
  await detail.getByRole('link', { name: 'test' }).click()
  await eventually(() => rows.count(), 2)
})

test('a change that is opened shows the words that it took out and put in, also hidden ones, where texts are stored', async () => {
  const { id } = (await own.service.post('/prompts', own.admin, { name: 'worded' })).body.data
  const { db, clock } = own.service.services
  await setStoreText(db, clock, own.tenant.org, true)
  const around = (start: number) => Array.from({ length: 40 }, (_, index) => `Rule ${start + index}`).join('\n')
  const texts = ['Greet the user by name.', 'Greet the user <b>\u202ewarmly</b>.'].map(
    (line) => `${around(1)}\n${line}\n${around(42)}\n`,
  )
  const entries = texts.map((text, index) => ({
    prompt_id: id,
    ...deployed(`${index + 1}`.repeat(40), daysAgo(2 - index)),
    text,
  }))
  expect((await own.service.post('/history/batch', own.admin, { entries })).status).toBe(200)
  const { page } = await own.open(`/prompts/${id}`)
  await page.getByRole('table', { name: 'Changes' }).getByRole('link', { name: 'Details' }).first().click()
  const diff = page.locator('.diff')
  await diff.locator('ins').first().waitFor()
  expect(await diff.locator('ins, del').allTextContents()).toEqual(['by name', '<b>\\u{202e}warmly</b>'])
  // Three lines around it, and the whole on demand.
  const lines = async () => ((await diff.textContent()) ?? '').trim().split('\n')
  expect((await lines()).map((line) => line.slice(0, 14))).toEqual([
    ...['Line 38Rule 38', 'Rule 39', 'Rule 40', 'Greet the user', 'Rule 42', 'Rule 43', 'Rule 44'],
  ])
  await page.getByRole('button', { name: 'Show all 81 lines' }).click()
  await eventually(async () => (await lines()).length, 81)
  expect(await findBarriers(page)).toEqual([])
})

test('two commits that signals name are compared side by side, though neither is in the history', async () => {
  const { id } = (await own.service.post('/prompts', own.admin, { name: 'canary' })).body.data
  const [base, head] = ['a'.repeat(40), 'b'.repeat(40)]
  const sent = (commit: string, count: number, rate: number) =>
    Array.from({ length: count }, (_, index) => ({
      value: index % 10 < rate * 10 ? ('positive' as const) : ('negative' as const),
      commit,
      at: daysAgo((index % 100) / 10),
    }))
  await addSignals(own.service, id, [...sent(base, 500, 0.5), ...sent(head, 300, 0.9)])
  const { page, requests } = await own.open(`/prompts/${id}/compare`)
  await page.getByRole('button', { name: 'Two commits, side by side' }).click()
  // The two are suggested from the signals.
  const answer = page.locator('.answer')
  await answer.getByText('bbbbbbb is better: ').waitFor()
  await page.getByText('Side by side on the same days').waitFor()
  await page.locator('.day-lines svg').waitFor()
  expect(await page.locator('.day-lines polyline').count()).toBe(2)
  expect(await page.getByRole('table', { name: 'Versions' }).locator('tbody tr').allTextContents()).toEqual([
    expect.stringMatching(/^b{12} not in the history90\.0\s% .*300 signals$/),
    expect.stringMatching(/^a{12} not in the history50\.0\s% .*500 signals$/),
  ])
  expect(await findBarriers(page)).toEqual([])
  expect(requests.length).toBeLessThanOrEqual(5)
  await page.getByRole('button', { name: 'Swap' }).click()
  await answer.getByText('aaaaaaa is worse: ').waitFor()
  expect(page.url()).toContain(`base=${head}&head=${base}`)
  await page.setViewportSize({ width: 320, height: 640 })
  expect(await findOverflow(page)).toBe(0)
})

test('signals are filtered by value and metadata, and their metadata is shown exactly', async () => {
  const signal =
    '{"value":"negative","metadata":{"model":"gpt-5","id":12345678901234567890,"tags":[],"deep":{"list":[1,"two"]}}}'
  await postText(own.service, own.tenant, signal)
  const { page } = await own.open(`/signals?prompt=${own.tenant.prompt}`)
  await page.getByLabel('Metadata').fill('model = gpt-5')
  await page.keyboard.press('Enter')
  await page.getByLabel('Value').selectOption('negative')
  await eventually(() => page.locator('tbody tr').count(), 1)
  expect(await page.locator('.chips button').allInnerTexts()).toEqual([
    'model = gpt-5 ×\n, remove',
    'negative ×\n, remove',
  ])
  // Each has its own direction: one may not turn the others around.
  expect(await page.locator('tbody .preview').first().locator('bdi').allInnerTexts()).toContain('model gpt-5')
  await page.locator('tbody .tree summary').first().click()
  await page.locator('.leaf').getByText('12345678901234567890', { exact: true }).waitFor()
  await page.locator('.leaf').getByText('tags', { exact: true }).waitFor()
  await page.getByText('deep').last().click()
  await page.getByText('list').last().click()
  await page.getByText('two', { exact: true }).waitFor()
  await page.getByRole('button', { name: 'model = gpt-5' }).click()
  await eventually(() => page.locator('tbody tr').count(), 25)
})

test('an unknown prompt is one message, and an unknown address a page with a way back', async () => {
  const { page } = await own.open('/prompts/pmt_none', { expectsTroubles: true })
  await page.getByRole('heading', { name: 'Prompt not found' }).waitFor()
  expect((await page.locator('main').textContent())?.match(/does not exist/g)).toHaveLength(1)
  expect(await page.locator('main :is(select, button, figure)').count()).toBe(0)
  await page.goto(`${own.service.url}/somewhere/else/`)
  await page.getByRole('heading', { name: 'Page not found' }).waitFor()
  await page.getByRole('link', { name: 'Go to the prompts' }).click()
  await page.getByRole('row', { name: /^test/ }).waitFor()
})

test('signals open where signals are, a filter that is none is said, and what is found is announced', async () => {
  await own.service.post('/prompts', own.admin, { name: 'newer and empty' })
  const { page } = await own.open('/signals')
  const status = page.getByRole('status')
  await status.getByText('Signals: 25 shown').waitFor()
  expect(await page.getByLabel('Prompt').locator('option:checked').textContent()).toBe('test')
  await page.getByLabel('Metadata').fill('gpt-5')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').getByText('Write a field, = and its value').waitFor()
  await page.getByLabel('Metadata').fill('model = none')
  await page.keyboard.press('Enter')
  await status.getByText('Signals: none').waitFor()
  expect(await page.getByRole('alert').count()).toBe(0)
})

test('two prompts of one name are told apart by their repositories', async () => {
  for (const repository of ['acme/one', 'git.example.com/acme/two']) {
    const { body } = await own.service.post('/prompts', own.admin, { name: 'twin', repository, path: 'twin.md' })
    await own.service.postSignal(body.data.id, own.tenant.key)
  }
  const { page } = await own.open('/signals')
  const options = page.getByLabel('Prompt').locator('option')
  await options.filter({ hasText: 'twin (acme/one)' }).waitFor({ state: 'attached' })
  expect(await options.filter({ hasText: /^twin/ }).allTextContents()).toEqual([
    'twin (acme/one)',
    'twin (git.example.com/acme/two)',
  ])
  const { page: usage } = await own.open('/usage')
  await usage.getByRole('row', { name: /twin.*acme\/one/ }).waitFor()
  await usage.getByRole('row', { name: /twin.*git\.example\.com\/acme\/two/ }).waitFor()
})

test('the usage stands in a sentence, with the pace', async () => {
  const { page } = await own.open('/usage')
  const answer = page.locator('.answer')
  await answer.waitFor()
  expect(await answer.textContent()).toMatch(
    /^\d of 1,000 signals used this month \(0\s%\)\. At this rate you will use about \d+ this month\.$/,
  )
})

test('signals are filtered by a field of any name', async () => {
  const name = 'a&b=c#d+e'
  await postText(own.service, own.tenant, JSON.stringify({ value: 'positive', metadata: { [name]: 'x' } }))
  const query = new URLSearchParams({ prompt: own.tenant.prompt, [`metadata.${name}`]: 'x' })
  const { page } = await own.open(`/signals?${query}`)
  await eventually(() => page.locator('tbody tr').count(), 1)
})

test('the signals are exported as a file, as they are filtered', async () => {
  const { page } = await own.open(`/signals?prompt=${own.tenant.prompt}&value=negative`)
  const saving = page.waitForEvent('download')
  await page.getByRole('button', { name: 'CSV' }).click()
  const download = await saving
  expect(download.suggestedFilename()).toBe(`${own.tenant.prompt}.csv`)
  const [heading = '', ...lines] = (await Bun.file(await download.path()).text()).trim().split(/\r?\n/)
  expect(heading).toContain('value')
  expect(lines.length).toBeGreaterThan(100)
  expect(lines.filter((line) => !line.includes('negative'))).toEqual([])
  expect(await page.getByText('ignores the other filters').count()).toBe(0)
  await page.getByLabel('Metadata').fill('model = gpt-5')
  await page.keyboard.press('Enter')
  await page.getByText('Export (ignores the other filters)').waitFor()
})

test('a change is told by its title, and a comparison is missing for one of two reasons', async () => {
  const { id } = (await own.service.post('/prompts', own.admin, { name: 'titled' })).body.data
  const first = { ...deployed('8f14e45fceea167a5a36dedd4bea2543f1c0a9d2', daysAgo(2)), title: 'Greet by first name' }
  await own.service.addHistory(id, [first])
  await addSignals(own.service, id, [{ value: 'positive', at: daysAgo(0.5) }])
  const { page } = await own.open(`/prompts/${id}`)
  const answer = page.locator('.answer')
  await answer.getByText('There is no earlier change to compare with.').waitFor()
  await page.getByText('Greet by first name by Ada, 1 signal').waitFor()
  // The chart's script has arrived: a reload would abort it.
  await page.locator('.u-over').waitFor()
  await own.service.addHistory(id, [deployed('45c48cce2e2d7fbdea1afc51c7c6ad26b0d94e11', daysAgo(1))])
  await page.reload()
  await answer.getByText('The change before it has no signals.').waitFor()
  const rows = page.getByRole('table', { name: 'Changes' }).locator('tbody tr')
  expect((await rows.allTextContents()).map((text) => text.slice(0, 27))).toEqual([
    'deployed 45c48cc on mainAda',
    'Greet by first namedeployed',
  ])
  await page.goto(`${page.url().split('?')[0]}/compare`)
  await page.getByRole('heading', { name: 'Compare versions of titled' }).waitFor()
  const choices = await page.getByLabel('Earlier').locator('option').allInnerTexts()
  expect(choices).toEqual([
    expect.stringMatching(/^45c48cc by /),
    expect.stringMatching(/^Greet by first name · 8f14e45 by /),
  ])
  // A long title does not widen the page of a phone.
  const long = { ...deployed('c9f0f895fb98ab9159f51fd0297e236d5e1b7c33', daysAgo(0.5)), title: 'word '.repeat(39) }
  await own.service.addHistory(id, [long])
  await page.setViewportSize({ width: 320, height: 640 })
  await page.reload()
  await page.getByLabel('Later').getByText('word').first().waitFor({ state: 'attached' })
  expect(await findOverflow(page)).toBe(0)
})

test.each([
  ['the command', (text: string) => ['sh', '-c', `${text} -sf`]],
  ['the lines of JavaScript', (text: string) => ['bun', '-e', text.replace('prompt-signals-client', clientPath)]],
])('a prompt without signals has %s to copy, and says when the first signal has arrived', async (what, commandOf) => {
  const { id } = (await own.service.post('/prompts', own.admin, { name: 'silent' })).body.data
  const { page } = await own.open(`/prompts/${id}`, { permissions: ['clipboard-read', 'clipboard-write'] })
  const { page: list } = await own.open(`/signals?prompt=${id}`)
  for (const one of [list, page]) await one.getByText('Waiting for the first signal').waitFor()
  expect(await findBarriers(page)).toEqual([])
  await page.getByRole('button', { name: `Copy ${what}` }).click()
  await page.getByText('Copied', { exact: true }).waitFor()
  const command = commandOf(await page.evaluate('navigator.clipboard.readText()'))
  const env = { ...process.env, KEY: own.tenant.key }
  expect(await Bun.spawn(command, { env, stdout: 'ignore' }).exited).toBe(0)
  await page.getByText('✓ The first signal has arrived').waitFor()
  await page.locator('.u-over').waitFor()
  await list.getByRole('cell', { name: 'positive' }).waitFor()
  // Another prompt that has signals, but not in this range, does not wait.
  await page.goto(`${own.service.url}${promptPath}?since=2020-01-01T00:00:00Z&until=2020-02-01T00:00:00Z`)
  await page.getByText('No signals in this range').waitFor()
  expect(await page.getByText('Waiting for the first signal').count()).toBe(0)
})
