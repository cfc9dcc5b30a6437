import { expect, test } from 'bun:test'
import { fillTables, documents as tableDocuments } from '../../scripts/document_tables.ts'

const textOf = (file: string) => Bun.file(file).text()
const linesOf = async (file: string) => (await textOf(file)).split('\n')

test.each(tableDocuments)(
  'the generated tables of %s are current: else run bun scripts/document_tables.ts',
  async (file) => {
    const text = await textOf(file)
    expect(text).toBe(await fillTables(text))
  },
)

test('settings, commands and metrics are documented', async () => {
  const texts = await Promise.all(tableDocuments.map(textOf))
  const marked = [...texts.join('').matchAll(/<!-- table: (\w+) -->/g)].map(([, name]) => name)
  expect(marked.sort()).toEqual(['commands', 'metrics', 'settings'])
})

test('every dependency has its reason, and only those', async () => {
  const { dependencies, devDependencies } = await Bun.file('package.json').json()
  const rows = (await linesOf('CONTRIBUTING.md')).filter((line) => /^\| `[^|]+` (\(dev\) )?\| /.test(line))
  const table = rows.slice(rows.findIndex((line) => line.startsWith('| `elysia`')))
  const named = (isDev: boolean) =>
    table
      .map((row) => row.split('|')[1] as string)
      .filter((names) => names.includes('(dev)') === isDev)
      .flatMap((names) => [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => name))
      .sort()
  expect(named(false)).toEqual(Object.keys(dependencies).sort())
  expect(named(true)).toEqual(Object.keys(devDependencies).sort())
})

test('every change to the driver names its issue upstream, and every issue that is named is in the table', async () => {
  const [files, ...hunks] = (await textOf('patches/postgres@3.4.9.patch')).split(/^@@ /m)
  expect(files).toStartWith('diff --git a/src/connection.js')
  const isNamed = (hunk: string) => /^\+.*(porsager\/postgres#\d|Not reported upstream:|Tuning, not a fix:)/m.test(hunk)
  expect(hunks.filter((hunk) => !isNamed(hunk))).toEqual([])
  const issuesIn = (text: string) => [...new Set(text.match(/#\d{3,}/g))].sort()
  const [, table = ''] = (await textOf('CONTRIBUTING.md')).split('### Patches of `postgres`')
  expect(issuesIn(hunks.join())).toEqual(issuesIn(table))
})

const pathsOf = (pattern: string) => [...new Bun.Glob(pattern).scanSync({ onlyFiles: false })].sort()
const folders = ['bench', 'clients', 'deploy', 'docs', 'patches', 'scripts', 'sql', 'src', 'test']
const paths = [...pathsOf('*'), ...folders.flatMap((folder) => pathsOf(`${folder}/**`))]
const decisions = pathsOf('docs/decisions/*')
const guides = ['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md', ...pathsOf('docs/*.md')]
const documents = [...guides, ...decisions]

/** Words, without what only draws a table. */
const countWords = (text: string) => text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length

test('the guides are short enough to be read', async () => {
  const texts = await Promise.all(guides.map(textOf))
  expect(countWords(texts.join('\n'))).toBeLessThanOrEqual(21_050)
})

const withoutCode = (text: string) => text.replace(/^```[\s\S]*?^```$/gm, '')

/** The anchors that GitHub gives to the headings of a document. */
const anchorsOf = async (file: string) =>
  [...withoutCode(await textOf(file)).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )

test.each(documents)('every link in %s leads to a file, and to a heading of it', async (document) => {
  const links = [...withoutCode(await textOf(document)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, link = '']) => link)
  const broken: string[] = []
  for (const link of links.filter((link) => !/^https?:/.test(link))) {
    const [path = '', anchor] = link.split('#')
    const file = path === '' ? document : new URL(path, `file:///${document}`).pathname.slice(1)
    const isRight = paths.includes(file) && (anchor === undefined || (await anchorsOf(file)).includes(anchor))
    if (!isRight) broken.push(link)
  }
  expect(broken).toEqual([])
})

test.each(documents)('every path that %s names exists', async (document) => {
  const text = (await textOf(document)).replace(/https?:\S+/g, '')
  const isPattern = (path: string) => path.includes('NNNN')
  const named = text.matchAll(/(?<![\w/-])(?:bench|deploy|docs|patches|scripts|sql|src|test)\/[\w./@-]*\w/g)
  expect([...named].map(String).filter((path) => !isPattern(path) && !paths.includes(path))).toEqual([])
  // Elsewhere a file is named by the end of its path.
  const names = [...text.matchAll(/[\w./-]+\.ts\b/g)].map(String)
  const isKnown = (name: string) => paths.some((file) => `/${file}`.endsWith(`/${name}`))
  expect(names.filter((name) => !isPattern(name) && !isKnown(name))).toEqual([])
})

const readSource = async () => {
  const sources = paths.filter((path) => /^(src|sql)\/.*\.(tsx?|sql)$/.test(path))
  return (await Promise.all(sources.map(textOf))).join('\n')
}

const internals = ['CONTRIBUTING.md', 'docs/architecture.md', ...decisions]

test.each(internals)('every function, table and setting that %s names is in the source', async (document) => {
  const words = new Set((await readSource()).match(/\w+/g))
  const named = [...(await textOf(document)).matchAll(/`(\w*(?:[a-z][A-Z]|_)\w*)`/g)]
  // Settings of the test run, and of the release.
  const isElsewhere = (name: string) => /^(TEST|MINISIGN)_/.test(name)
  expect(named.map(([, name = '']) => name).filter((name) => !isElsewhere(name) && !words.has(name))).toEqual([])
})

test('every message that docs/operating.md explains is one that the program has', async () => {
  const [, tables = ''] = (await textOf('docs/operating.md')).split('## What it says, and what to do')
  const [messages = ''] = tables.split('### Alarms')
  const source = (await readSource()).replaceAll("\\'", "'")
  const named = [...messages.matchAll(/^\| (.+?) \|/gm)].flatMap(([, cell = '']) => [...cell.matchAll(/`([^`]+)`/g)])
  // The names of things stand in place of the dots.
  const parts = named.flatMap(([, message = '']) => message.split(/…| N\b|: /)).map((part) => part.trim())
  expect(parts.length).toBeGreaterThan(20)
  expect(parts.filter((part) => !source.includes(part))).toEqual([])
})

test('every metric that docs/operating.md has an alarm for is in the table of metrics', async () => {
  const [, alarms = ''] = (await textOf('docs/operating.md')).split('### Alarms')
  const named = alarms.match(/prompt_signals_[a-z_]+/g) ?? []
  const table = await textOf('docs/observability.md')
  expect(named.filter((name) => !table.includes(`\`${name.replace(/_count$/, '')}\``))).toEqual([])
})

test.each(documents)('every benchmark that %s names is a section of it', async (document) => {
  const named = [...(await textOf(document)).matchAll(/bun run bench (?:--quick )?([a-z_]+)/g)].map(([, name]) => name)
  expect(named.filter((name) => !paths.includes(`bench/sections/${name}.ts`))).toEqual([])
})
