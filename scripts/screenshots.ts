// Makes docs/images: the console of the demo and the button, in light and dark, as the documents show them.
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { launchBrowser } from '../test/browser.ts'
import { chromiumProgram, findOrInstall } from '../test/programs.ts'
import { makeButton, makeConsole } from './console.ts'

const root = join(import.meta.dirname, '..')
const images = join(root, 'docs/images')

process.env.CHROMIUM_PATH ??= (await findOrInstall([chromiumProgram]))[0]
await makeConsole()
await makeButton()
const folder = await mkdtemp(join(tmpdir(), 'screenshots-'))
const server = Bun.spawn([process.execPath, 'src/main.ts', 'serve', '--demo', '--port', '0'], {
  cwd: root,
  env: { ...process.env, DATA_DIR: join(folder, 'data') },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const browser = await launchBrowser()
try {
  const link = await linkOf(server.stdout)
  await mkdir(images, { recursive: true })
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ colorScheme, viewport: { width: 1_040, height: 900 }, locale: 'en-GB' })
    await page.goto(link.replace('/#', '/prompts#'))
    await page.getByRole('link', { name: 'greeting' }).click()
    await page.locator('.flag').first().waitFor()
    await page.locator('.interval').first().waitFor()
    await page.screenshot({ path: join(images, `console-${colorScheme}.png`) })
    await page.close()
  }
  await showButton(new URL(link).origin)
} finally {
  await browser.close()
  server.kill()
  await server.exited
  await rm(folder, { recursive: true })
}

async function showButton(service: string): Promise<void> {
  const page = await browser.newPage({ viewport: { width: 740, height: 220 }, deviceScaleFactor: 2 })
  const half = (scheme: string, colours: string) =>
    `<div style="flex: 1; padding: 1.5rem; color-scheme: ${scheme}; ${colours}">
      <prompt-feedback reasons="Wrong,Too long,Unsafe" comment></prompt-feedback></div>`
  const headers = { 'access-control-allow-origin': '*' }
  await page.route('**/api/**', (route) => route.fulfill({ status: 201, headers, json: { data: {} } }))
  await page.setContent(`<script src="${service}/feedback.js"></script>
    <body style="margin: 0; display: flex; height: 100vh; font: 16px system-ui">
      ${half('light', 'background: #fff; color: #222')}${half('dark', 'background: #1b1f24; color: #e6e6e6')}`)
  for (const name of ['Bad answer', 'Too long']) {
    for (const button of await page.getByRole('button', { name }).all()) await button.click()
  }
  await page.getByLabel('Comment').first().fill('The answer was in the first line')
  await page.getByText('Thank you.').nth(1).waitFor()
  await page.screenshot({ path: join(images, 'button.png') })
}

/** The link that the demo prints, which opens signed in. */
async function linkOf(stdout: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const chunk of stdout) {
    text += decoder.decode(chunk, { stream: true })
    const link = /\S+#key=psk_\w{36}/.exec(text)?.[0]
    if (link) return link
  }
  throw new Error(`The demo ended before it printed its link: ${text}`)
}
