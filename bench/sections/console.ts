import { launchBrowser } from '../../test/browser.ts'
import { chromiumProgram, findOrInstall } from '../../test/programs.ts'
import { median } from '../compare.ts'
import type { Context } from '../context.ts'
import { createTenants, promptOf, unreachableLimit } from '../fixtures.ts'
import type { Request } from '../load.ts'
import { fill } from './signal_reads.ts'

const openings = 15

/** Notes when the first flag is there, which is placed with the chart once that has been drawn. */
const noteDrawing = `new MutationObserver(() => {
  if (window.drawnAt === undefined && document.querySelector('.flag')) window.drawnAt = performance.now()
}).observe(document, { childList: true, subtree: true })`

const read = `({
  paintedMs: performance.getEntriesByName('first-contentful-paint')[0]?.startTime,
  drawnMs: window.drawnAt,
  bytes: [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
    .reduce((sum, { transferSize }) => sum + transferSize, 0),
})`

type Opening = { paintedMs: number; drawnMs: number; bytes: number }

/** The page of a prompt with ten million signals of a year, in a browser that has never seen it. */
export async function measureConsole(context: Context): Promise<void> {
  const { database, report, plan } = context
  process.env.CHROMIUM_PATH ??= (await findOrInstall([chromiumProgram]))[0]
  const shape = { organisations: 1, promptsEach: 1, monthlyLimit: unreachableLimit }
  const [request] = (await createTenants(database, shape)) as [Request]
  await fill(context, request, plan.signalsToRead)
  await database.sql.script('vacuum analyze signals, signal_counts, signal_commit_counts')
  const server = await context.serve()
  const browser = await launchBrowser()
  const opened: Opening[] = []
  // The first is for the service's code to be compiled, and for Postgres to have read its indexes.
  for (let count = 0; count <= openings; count += 1) {
    const page = await browser.newPage()
    await page.addInitScript(noteDrawing)
    await page.goto(`${server.url}/prompts/${promptOf(request)}?range=1y#key=${request.key}`)
    await page.locator('.flag').first().waitFor()
    await page.locator('.interval').first().waitFor()
    if (count > 0) opened.push((await page.evaluate(read)) as Opening)
    await page.close()
  }
  await browser.close()
  await server.stop()
  const of = `of ${plan.signalsToRead.toLocaleString('en-GB')} signals`
  report.targets.push(
    { name: 'console, first contentful paint, ms', value: median(opened.map((one) => one.paintedMs)), atMost: 500 },
    {
      name: `console, drawn chart of a year ${of}, ms`,
      value: median(opened.map((one) => one.drawnMs)),
      atMost: 1_000,
    },
    {
      name: 'console, bytes sent to open it, with the data',
      value: median(opened.map((one) => one.bytes)),
      atMost: 150_000,
    },
  )
}
