// Makes generated/guides.bundle: the guides for users as pages, with their images, compressed, in one JSON object.
import { readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { packFile, writeGenerated } from './bundle.ts'

const root = join(import.meta.dirname, '..')
/** The page that leads to the others. */
const overview = 'README.md'
/** For those who change the service: its parts are not in the binary. */
const internal = ['architecture.md']

export async function makeGuides(): Promise<void> {
  const guides = (await readdir(join(root, 'docs'))).filter((file) => file.endsWith('.md') && !internal.includes(file))
  const sources = [overview, ...guides.sort().map((file) => `docs/${file}`)]
  const texts = await Promise.all(sources.map((source) => readFile(join(root, source), 'utf8')))
  const titles = texts.map((text) => /^# (.+)$/m.exec(text)?.[1] ?? '')
  const list = sources.map((source, index) => ({ name: nameOf(source), title: titles[index] as string }))
  const pages = sources.map((source, index): [string, string, Uint8Array] => {
    const html = writePage(list, nameOf(source), render(texts[index] as string, source, sources))
    return [nameOf(source), 'text/html; charset=utf-8', Buffer.from(html)]
  })
  const images = (await readdir(join(root, 'docs/images'))).map(async (file): Promise<[string, string, Uint8Array]> => {
    return [file, 'image/png', await readFile(join(root, 'docs/images', file))]
  })
  const style = await readFile(join(import.meta.dirname, 'guides.css'))
  const files = [...pages, ['guides.css', 'text/css; charset=utf-8', style] as const, ...(await Promise.all(images))]
  const packed = files.map(([name, type, content]) => [name, packFile(type, content)])
  await writeGenerated('guides.bundle', JSON.stringify({ files: Object.fromEntries(packed) }))
}

/** The last part of the address of a guide. */
const nameOf = (source: string): string => (source === overview ? 'overview' : basename(source, '.md'))

/** Links lead to the other guides and images; one to a file that is not in the binary is only its text. */
function render(text: string, source: string, sources: string[]): string {
  const pathOf = (link: string) => new URL(link, `file:///${source}`).pathname.slice(1)
  const drawn = text.replace(/^```mermaid\n[\s\S]*?^```$/gm, '')
  // A column without a heading has no heading for a screen reader either.
  const html = Bun.markdown.html(drawn, { headings: { ids: true } }).replaceAll('<th></th>', '<td></td>')
  return new HTMLRewriter()
    .on('a[href]', {
      element(link) {
        const href = link.getAttribute('href') as string
        if (/^(https?:|#)/.test(href)) return
        const [path = '', anchor] = href.split('#')
        const target = pathOf(path)
        if (!sources.includes(target)) return void link.removeAndKeepContent()
        link.setAttribute('href', nameOf(target) + (anchor === undefined ? '' : `#${anchor}`))
      },
    })
    .on('img', { element: (image) => void image.setAttribute('src', basename(image.getAttribute('src') ?? '')) })
    .on('source', {
      element: (image) => void image.setAttribute('srcset', basename(image.getAttribute('srcset') ?? '')),
    })
    .transform(html)
}

function writePage(list: { name: string; title: string }[], current: string, content: string): string {
  const title = list.find(({ name }) => name === current)?.title
  const links = list.map(({ name, title }) => {
    const here = name === current ? ' aria-current="page"' : ''
    return `<li><a href="${name}"${here}>${name === 'overview' ? 'Overview' : Bun.escapeHTML(title)}</a></li>`
  })
  return `<!doctype html>
<html lang="en-GB">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>${Bun.escapeHTML(title ?? '')} · prompt-signals</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="guides.css">
  </head>
  <body>
    <header><a href="../">Console</a> <a href="../docs">Interface</a></header>
    <nav aria-label="Guides"><ul>${links.join('')}</ul></nav>
    <main>${content}</main>
  </body>
</html>
`
}
