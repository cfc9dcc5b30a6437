// What is easily lost: the direction of names, what does not fit, and what to do next.
import { expect, test } from 'bun:test'
import { findBarriers } from '../browser.ts'
import { addSignals, deployed, merged, onDays, rollUp, signals } from '../impact/history.ts'
import { eventually } from '../program.ts'
import { daysAgo } from './evidence.ts'
import { useConsole } from './open.ts'

const own = useConsole()

/** A prompt with its key, in an organisation without others. */
async function createPrompt() {
  const tenant = await own.service.createTenant()
  const add = (...entries: ReturnType<typeof deployed>[]) => own.service.addHistory(tenant.prompt, entries)
  return { ...tenant, add, path: `/prompts/${tenant.prompt}` }
}

test('a name from right to left does not turn our words around', async () => {
  const { key, prompt, path, add } = await createPrompt()
  const user = { name: 'merge-bot', email: 'bot@example.com' }
  await add({ ...merged('a'.repeat(40), daysAgo(1), 7), user, authors: ['אדה'] } as ReturnType<typeof merged>)
  await addSignals(own.service, prompt, signals(1, 0, { at: daysAgo(0.5) }))
  for (const place of ['/', '/prompts', path]) {
    const { page } = await own.open(place, { key })
    const words = page.getByText('אדה, merged by merge-bot').first()
    await words.waitFor({ state: 'attached' })
    expect(await words.evaluate((one) => one.matches(':dir(ltr)'))).toBe(true)
  }
})

test('two different commits are compared at first, though signals name one of them in two ways', async () => {
  const { key, prompt, path } = await createPrompt()
  const [base, head] = ['ab1'.repeat(14).slice(0, 40), 'cd2'.repeat(14).slice(0, 40)]
  await addSignals(own.service, prompt, [
    ...signals(20, 10, { at: daysAgo(2), commit: base }),
    ...signals(10, 5, { at: daysAgo(2), commit: base.slice(0, 7) }),
    ...signals(5, 5, { at: daysAgo(2), commit: head }),
  ])
  const { page, requests } = await own.open(`${path}/compare?by=commit`, { key })
  await page.getByText('1 day with signals of both').waitFor()
  // Only the name of the prompt is needed of it.
  expect(requests.filter((one) => one.includes('/impact'))).toEqual([expect.stringContaining('limit=1&page=1')])
  expect(await page.getByLabel('Commit', { exact: true }).inputValue()).toBe(head)
})

test('a rate that changed without a change has a flag, which leads to its sentence', async () => {
  const { key, prompt, path, add } = await createPrompt()
  await add(deployed('a'.repeat(40), daysAgo(51)), deployed('b'.repeat(40), daysAgo(50)))
  await addSignals(own.service, prompt, [
    ...signals(1, 0, { at: daysAgo(1_000) }),
    ...onDays(40, signals(900, 100, { at: daysAgo(48) })),
    ...onDays(7, signals(120, 120, { at: daysAgo(7) })),
  ])
  await rollUp(own.service, prompt)
  const { page } = await own.open(path, { key })
  await page.locator('.flag').getByText('not in git').click()
  await page.locator('.answer:target').getByText('Changed, but not in git').waitFor()
  // Over a long time its flag is one with those of the changes, but it is none of them.
  const { page: whole } = await own.open(`${path}?range=all`, { key })
  await whole.locator('.flag').getByText('3 events').waitFor()
})

test('changes without any signals lead to the first one, and only who may create a key to the keys', async () => {
  const { path, add, ...tenant } = await createPrompt()
  await add(deployed('a'.repeat(40), daysAgo(1)))
  const { key: reader } = await own.service.createKey(tenant, ['signals:read', 'history:read'])
  const { key: admin } = await own.service.createKey(tenant, ['signals:read', 'keys:write'])
  for (const [key, links] of [
    [reader, 0],
    [admin, 1],
  ] as const) {
    for (const place of ['/', path]) {
      const { page } = await own.open(place, { key })
      await page.getByText('Waiting for the first signal').waitFor()
      await page.getByText(`"commit_sha":"${'a'.repeat(40)}"`).waitFor()
      expect(await page.locator('main').getByRole('link', { name: 'key', exact: true }).count()).toBe(links)
      expect(await page.getByText('not an experiment').count()).toBe(0)
    }
  }
})

test('fields of the metadata are suggested, and one that is opened keeps its name for screen readers', async () => {
  const { key, prompt, path } = await createPrompt()
  await addSignals(own.service, prompt, signals(2, 0, { at: daysAgo(1), commit: 'a'.repeat(40) }))
  const { page } = await own.open(path, { key })
  await page.getByLabel('Field').focus()
  await eventually(
    () =>
      page
        .locator('#fields option')
        .evaluateAll((all) => all.map((one) => (one as unknown as { value: string }).value)),
    ['commit_sha'],
  )
  await page.getByRole('link', { name: 'View signals' }).click()
  await page.locator('.tree summary').first().click()
  expect(await findBarriers(page)).toEqual([])
  // The filters stand side by side.
  const fields = page.locator('.filters .field')
  const bottoms = await fields.evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().bottom)))
  expect([bottoms.length, new Set(bottoms).size]).toEqual([5, 1])
})

test('what is wrong in a long form is in sight', async () => {
  const { page } = await own.open('/settings/keys', { expectsTroubles: true })
  await page.setViewportSize({ width: 1_280, height: 480 })
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('thumbs')
  await page.getByLabel('For').selectOption('browser')
  await page.getByLabel('Origins').fill('example.com')
  await page.keyboard.press('Tab')
  await page.getByLabel('Name').press('Enter')
  const alert = page.getByRole('alert')
  await alert.waitFor()
  expect(await alert.evaluate((one) => one.getBoundingClientRect().bottom)).toBeLessThanOrEqual(480)
})

test('a long name of the organisation leaves the key on its line', async () => {
  const { key, org } = await createPrompt()
  await own.service.services.db
    .sql`update organisations set name = ${'A very long name '.repeat(8)} where public_id = ${org}`
  const { page } = await own.open('/usage', { key })
  await page.getByText('A very long name').first().waitFor()
  const heights = await page.locator('.bar > *').evaluateAll((all) => all.map((one) => one.getBoundingClientRect().top))
  expect(Math.max(...heights) - Math.min(...heights)).toBeLessThan(20)
})
