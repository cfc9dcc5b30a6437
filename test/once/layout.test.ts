import { expect, test } from 'bun:test'
import { Glob } from 'bun'

type Import = { from: string; target: string; isType: boolean; isLazy: boolean }

/** Every other folder of `src` is a feature. */
const layers = ['cli', 'http', 'mcp', 'ops', 'db', 'lib', 'platform', 'console']
const all = [...new Glob('src/**/*.{ts,tsx}').scanSync()].filter((file) => !file.endsWith('.d.ts')).sort()
/** The console runs in a browser, and has rules of its own. */
const isOfConsole = (file: string) => file.startsWith('src/console/')
const files = all.filter((file) => !isOfConsole(file))
const texts = new Map(await Promise.all(all.map(async (file) => [file, await Bun.file(file).text()] as const)))

const importsOf = (file: string): Import[] => {
  const found = (texts.get(file) as string).matchAll(
    /^(?:import|export) (type )?[^'"]*?from '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm,
  )
  return [...found].map(([statement, isType, target, bare, lazy]) => ({
    from: file,
    target: resolve(file, (target ?? bare ?? lazy) as string),
    isLazy: lazy !== undefined,
    isType: isType !== undefined || /\{( type [^,}]+,?)+ \}/.test(statement),
  }))
}
const imports = files.flatMap(importsOf)
const importsOfConsole = all.filter(isOfConsole).flatMap(importsOf)

function resolve(file: string, target: string): string {
  if (!target.startsWith('.')) return target
  return new URL(target, `file:///${file}`).pathname.slice(1)
}

/** The layer of a file: a feature's role, or the folder or name of anything else. */
function layer(file: string): string {
  const [, folder = '', name] = file.split('/')
  if (name === undefined || layers.includes(folder)) return folder.replace('.ts', '')
  return name.match(/^(operations|routes|schema|store)(_\w+)?\.ts$/)?.[1] ?? 'rules'
}

const feature = (file: string): string | undefined => {
  const [root, folder = '', name] = file.split('/')
  return root === 'src' && name !== undefined && !layers.includes(folder) ? folder : undefined
}

/** Who may import whom; types see below. `operations` are those of a feature, or the list of them all. */
const allowed: Record<string, string[]> = {
  main: ['cli'],
  cli: [
    ...['cli', 'app', 'deps', 'operations', 'rules', 'schema', 'db', 'config', 'clock', 'errors', 'lib', 'log', 'http'],
    'platform',
  ],
  app: ['operations', 'routes', 'mcp', 'ops', 'http', 'errors'],
  deps: ['ops', 'rules', 'http', 'db', 'errors', 'lib', 'platform'],
  ops: ['ops', 'rules', 'schema', 'db', 'errors', 'lib'],
  operations: ['operations', 'rules', 'schema', 'http', 'errors', 'lib'],
  routes: ['rules', 'schema', 'store', 'http', 'errors', 'lib'],
  mcp: ['mcp', 'http', 'errors', 'lib'],
  rules: ['rules', 'schema', 'store', 'db', 'errors', 'lib'],
  store: [],
  schema: ['schema', 'lib'],
  http: ['http', 'errors', 'lib', 'log', 'platform'],
  db: ['db', 'errors', 'lib', 'platform'],
  lib: ['lib', 'errors'],
  platform: ['platform'],
  config: ['setting_types'],
  setting_types: ['lib'],
  clock: [],
  errors: [],
  log: ['lib'],
}

test('every import follows the direction from main to the database', () => {
  const wrong = imports
    .filter(({ target, isType }) => target.startsWith('src/') && !isType)
    .filter(({ from, target }) => !allowed[layer(from)]?.includes(layer(target)))
  expect(wrong).toEqual([])
})

/** From top to bottom. The parts of a feature know each other's types. */
const levels = [
  ['main'],
  ['cli'],
  ['app'],
  ['deps', 'ops'],
  ['operations', 'routes', 'mcp'],
  ['http'],
  ['rules', 'schema', 'store'],
  ['db'],
  ['config', 'clock', 'errors', 'log', 'setting_types', 'lib', 'platform'],
]
const level = (file: string) => levels.findIndex((one) => one.includes(layer(file)))

test('no file takes a type from above it', () => {
  const wrong = imports.filter(({ from, target }) => target.startsWith('src/') && level(target) < level(from))
  expect(wrong).toEqual([])
})

test('only the application and the commands that open services know them all', () => {
  const importing = imports.filter(({ target }) => target === 'src/deps.ts').map(({ from }) => from)
  expect([...new Set(importing)]).toEqual(['src/app.ts', 'src/cli/api.ts', 'src/cli/lifecycle.ts'])
})

test('no feature knows the store, the operations or the routes of another', () => {
  const wrong = imports.filter(
    ({ from, target }) =>
      feature(from) &&
      feature(target) &&
      feature(from) !== feature(target) &&
      /\/(store|operations|routes)(_\w+)?\.ts$/.test(target),
  )
  expect(wrong).toEqual([])
})

test('http knows no feature, not even a type of one but who calls', () => {
  const wrong = imports.filter(({ from, target }) => layer(from) === 'http' && feature(target))
  expect(wrong.filter(({ target }) => target !== 'src/keys/caller.ts')).toEqual([])
  const known = importsOf('src/keys/caller.ts').filter(
    ({ target, isType }) => !isType || !target.startsWith('src/lib/'),
  )
  expect(known).toEqual([])
})

test('no two files import each other, directly or through others', () => {
  const targets = Map.groupBy(
    [...imports, ...importsOfConsole].filter(({ isLazy }) => !isLazy),
    ({ from }) => from,
  )
  const reachableFrom = (file: string) => {
    const reached = new Set<string>()
    const visit = (from: string) => {
      for (const { target } of targets.get(from) ?? []) {
        if (reached.has(target)) continue
        reached.add(target)
        visit(target)
      }
    }
    visit(file)
    return reached
  }
  expect(all.filter((file) => reachableFrom(file).has(file))).toEqual([])
})

test.each([
  [/^(elysia|@elysiajs\/)/, ['routes', 'mcp', 'ops', 'app', 'http']],
  [/^@sinclair\/typebox/, ['schema', 'cli', 'mcp', 'http', 'lib']],
  [/^(postgres$|@electric-sql\/|ioredis)/, ['db']],
  [/^pino/, ['log']],
  [/^bun/, []],
])('only the layers that should know %p', (library, layers) => {
  const wrong = imports.filter(({ from, target }) => library.test(target) && !layers.includes(layer(from)))
  expect(wrong).toEqual([])
})

test.each([['@modelcontextprotocol/server', 'src/mcp/serve.ts']])('only one file knows %s', (library, file) => {
  expect(imports.filter(({ target }) => target.startsWith(library)).map(({ from }) => from)).toEqual([file])
})

test.each([
  ['agents', 'src/mcp/serve.ts', 'src/mcp/routes.ts'],
  ['the documentation', '@elysiajs/swagger', 'src/http/docs.ts'],
])('the library of %s is loaded by the first request for it, not by the start', (_, library, from) => {
  const loading = imports.filter(({ target, isType }) => target === library && !isType)
  expect(loading).toMatchObject([{ from, isLazy: true }])
})

test.each([
  [/\bBun\./, 'src/platform/bun.ts'],
  [/\bDeno\./, 'src/platform/deno.ts'],
])('only one file knows %p', (runtime, file) => {
  expect(files.filter((file) => runtime.test(texts.get(file) as string))).toEqual([file])
})

test('only config reads the environment, and only clock the time of day', () => {
  const reading = (pattern: RegExp) => files.filter((file) => pattern.test(texts.get(file) as string))
  expect(reading(/process\.env/)).toEqual(['src/config.ts'])
  expect(reading(/new Date\(\)|Date\.now/)).toEqual(['src/clock.ts'])
})

/** The room of a file of the console: its folder, or its own name. */
const room = (file: string) => (file.split('/')[2] ?? '').replace(/\.tsx?$/, '')

/** What each room may use, types too; each may also use what is in it. */
const roomsAllowed: Record<string, string[]> = {
  main: ['shell', 'client', 'style.css'],
  shell: ['pages', 'parts', 'client'],
  pages: ['parts', 'chart', 'client'],
  parts: ['client'],
  chart: ['parts', 'client'],
  client: [],
}

/** What the service and the console share, with the rooms that use it. It takes nothing else with it into the browser. */
const sharedWithConsole: Record<string, string[]> = {
  'src/lib/counts.ts': ['parts', 'chart'],
  'src/lib/hidden.ts': ['parts'],
  'src/impact/rate.ts': ['pages', 'parts', 'chart'],
  'src/impact/sentence.ts': ['pages', 'parts'],
  'src/lib/repository_links.ts': ['pages', 'parts'],
  'src/http/console_paths.ts': ['shell', 'client'],
  'src/lib/scopes.ts': ['shell', 'pages', 'parts', 'client'],
}

test('the console uses only itself and what it shares with the service, from its pages to the client', () => {
  const isAllowed = ({ from, target }: Import) => {
    if (target === 'generated/api.d.ts') return room(from) === 'client'
    if (target in sharedWithConsole) return sharedWithConsole[target]?.includes(room(from))
    if (!target.startsWith('src/')) return /^(preact(\/hooks)?|uplot(\/.*)?|openapi-fetch|diff)$/.test(target)
    return isOfConsole(target) && (room(from) === room(target) || roomsAllowed[room(from)]?.includes(room(target)))
  }
  expect(importsOfConsole.filter((one) => !isAllowed(one))).toEqual([])
  const ofCharts = importsOfConsole.filter(({ target }) => /^uplot/.test(target))
  expect(ofCharts.filter(({ from }) => room(from) !== 'chart')).toEqual([])
  const ofShared = Object.keys(sharedWithConsole).flatMap(importsOf)
  expect(ofShared.filter(({ target }) => !(target in sharedWithConsole))).toEqual([])
})

test('the service imports nothing of the console', () => {
  expect(imports.filter(({ target }) => isOfConsole(target))).toEqual([])
})

test('no text of the console becomes markup', () => {
  const wrong = all
    .filter(isOfConsole)
    .filter((file) => /innerHTML|outerHTML|insertAdjacent|document\.write/.test(texts.get(file) as string))
  expect(wrong).toEqual([])
})

test('every file has a role or a name of its own', () => {
  expect(all.filter((file) => /(utils?|helpers?|services?|index|misc|common)\.ts$/.test(file))).toEqual([])
})
