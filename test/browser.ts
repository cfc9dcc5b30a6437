// A real browser that reaches no other host, and whose every complaint is kept.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

export type Watched = {
  page: Page
  /** Requests to other hosts, failed ones, errors and warnings of the console: empty unless something is wrong. */
  troubles: string[]
  /** The requests to the interface, as `GET /api/v1/keys`. */
  requests: string[]
}

/** How long to wait for what a page is to show: no promise, and far above what a busy machine takes. */
const PATIENCE_MS = 90_000

export const launchBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: process.env.CHROMIUM_PATH ?? '',
    timeout: PATIENCE_MS,
    args: [
      ...['--no-sandbox', '--disable-gpu', '--no-first-run'],
      ...['--disable-background-networking', '--disable-component-update', '--disable-sync'],
    ],
  })

let shared: Promise<Browser> | undefined

/** The browser that all files of a worker share: tests are isolated by their windows. It ends with the worker. */
export async function shareBrowser(): Promise<Browser> {
  shared ??= launchBrowser()
  const browser = await shared
  // Bun ends the processes of a test that hangs.
  if (browser.isConnected()) return browser
  shared = undefined
  return shareBrowser()
}

export async function openWindow(origin: string, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await (await shareBrowser()).newContext(options)
  return watchPage(await context.newPage(), origin)
}

/** Another tab of the same browser, which shares what tabs share. It is closed with the window. */
export const openTab = async ({ page }: Watched, origin: string): Promise<Watched> =>
  watchPage(await page.context().newPage(), origin)

async function watchPage(page: Page, origin: string): Promise<Watched> {
  page.setDefaultTimeout(PATIENCE_MS)
  const troubles: string[] = []
  const requests: string[] = []
  await page.route('**', (route) => {
    const address = route.request().url()
    if (new URL(address).origin === origin || address.startsWith('data:')) return route.continue()
    troubles.push(`asked for ${address}`)
    return route.abort()
  })
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) troubles.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => troubles.push(`thrown: ${error.message}`))
  page.on('requestfailed', (request) => troubles.push(`failed: ${request.url()}`))
  page.on('response', (response) => {
    if (response.status() >= 400) troubles.push(`${response.status()}: ${response.url()}`)
  })
  page.on('request', (request) => {
    const { pathname, search } = new URL(request.url())
    if (pathname.includes('/api/v1/')) requests.push(`${request.method()} ${pathname}${search}`)
  })
  return { page, troubles, requests }
}

const axePath = join(import.meta.dir, '../node_modules/axe-core/axe.min.js')

/** What makes the page hard to use for some people, as axe-core finds it; a line for each. */
export async function findBarriers(page: Page): Promise<string[]> {
  if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(await readFile(axePath, 'utf8'))
  return page.evaluate(`
    axe.run(document).then(({ violations }) =>
      violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => id + ': ' + html.slice(0, 200))))`)
}

/** What a finger may miss: controls below 24 pixels, but for links within a sentence and boxes beside their label. */
export const findSmallTargets = (page: Page): Promise<string[]> =>
  page.evaluate(`[...document.querySelectorAll('a, button, select, summary, input, label.check')]
    .filter((one) => one.checkVisibility() && !one.closest('p:not(.subtitle), .skip') && one.type !== 'checkbox')
    .map((one) => ({ one, box: one.getBoundingClientRect() }))
    .filter(({ box }) => box.width < 24 || box.height < 24)
    .map(({ one, box }) => one.outerHTML.slice(0, 100) + ' ' + box.width + ' x ' + box.height)`)

/** By how many pixels the page is wider than the window. A chart takes the window's new width within a frame. */
export const findOverflow = (page: Page): Promise<number> =>
  page.evaluate(`new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))
    .then(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)`)
