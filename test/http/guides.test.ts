import { expect, test } from 'bun:test'
import { useOwnService } from '../use.ts'

const service = useOwnService()
const get = (path: string) => fetch(`${service.url}/guides${path}`, { redirect: 'manual' })

test('the guides lead to each other, to their headings and to their images, and run no script', async () => {
  const start = await get('')
  expect([start.status, start.headers.get('location')]).toEqual([302, 'guides/overview'])
  const [wanted, pages] = [['overview'], new Map<string, string>()]
  for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
    if (pages.has(name)) continue
    const page = await get(`/${name}`)
    expect([name, page.status, page.headers.get('content-type')]).toEqual([name, 200, 'text/html; charset=utf-8'])
    expect(page.headers.get('content-security-policy')).toStartWith(
      "default-src 'none'; script-src 'self'; style-src 'self'",
    )
    const text = await page.text()
    pages.set(name, text)
    wanted.push(...linksOf(text).flatMap(([target]) => target || []))
  }
  expect(pages.size).toBeGreaterThan(10)
  const broken: string[] = []
  for (const [name, text] of pages) {
    expect(text).not.toMatch(/<script|style=|mermaid|<th><\/th>/)
    for (const [target, anchor] of linksOf(text)) {
      if (anchor && !pages.get(target || name)?.includes(` id="${anchor}"`)) broken.push(`${name}: ${target}#${anchor}`)
    }
    for (const [, file = ''] of text.matchAll(/(?:src|srcset|stylesheet" href)="([^"]+)"/g)) {
      const { status, headers } = await get(`/${file}`)
      expect([status, headers.get('content-type')]).toEqual([200, expect.stringMatching(/^image\/png|^text\/css/)])
    }
  }
  expect(broken).toEqual([])
  expect((await get('/none')).status).toBe(404)
})

/** The links to other guides and to headings. Those above the folder lead to the console and the interface. */
const linksOf = (text: string): [string, string?][] =>
  [...text.matchAll(/<a href="([^"]+)"/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^(https?:|\.\.)/.test(link))
    .map((link) => link.split('#') as [string, string?])
