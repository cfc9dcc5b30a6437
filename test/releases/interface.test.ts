// What 1.0 promised, every 1.x keeps. `bun scripts/freeze.ts` writes the files again, until 1.0 is released.
import { expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Interface, readInterface } from '../../scripts/interface.ts'
import { hashOf } from '../../src/db/migrations.ts'
import { migrations } from '../../src/platform.ts'
import { findBreaks } from './breaks.ts'
import { isFreezing, requireUnreleased } from './freezing.ts'

const folder = join(import.meta.dir, '1.0')
const now = await readInterface()
const hashes = Object.fromEntries(migrations.map((migration) => [migration.name, hashOf(migration)]))
const { document, ...others } = now

if (isFreezing) {
  mkdirSync(folder, { recursive: true })
  const write = (name: string, value: object, indent?: number) =>
    writeFileSync(join(folder, name), `${JSON.stringify(value, null, indent)}\n`)
  write('openapi.json', document)
  write('interface.json', { ...others, migrations: hashes }, 2)
}

const read = (name: string) => JSON.parse(readFileSync(join(folder, name), 'utf8'))
const { migrations: frozenHashes, ...frozen } = read('interface.json')

test('every migration of 1.0 is as it was (until its release: bun scripts/freeze.ts)', () => {
  expect(hashes).toMatchObject(frozenHashes)
})

test('no operation, field, setting, command or metric of 1.0 is removed or takes less (until its release: bun scripts/freeze.ts)', () => {
  expect(findBreaks({ ...frozen, document: read('openapi.json') }, now)).toEqual([])
})

const path = '/api/v1/prompts/{prompt_id}/signals'
const [post, schemas] = [`POST ${path}`, 'document.components.schemas']

/** Sets the value at a place of the interface; undefined removes it. */
function change(place: string, value: unknown): Interface {
  const names = place.split('.')
  const part = names[0] as keyof Interface
  const changed = { ...now, [part]: structuredClone(now[part]) }
  const last = names.pop() as string
  // biome-ignore lint/suspicious/noExplicitAny: a document of any shape
  const target = names.reduce<any>((inner, name) => inner[name], changed)
  if (value === undefined) delete target[last]
  else target[last] = value
  return changed
}

const metadata = `${schemas}.NewSignal.properties`
const recorded = `${schemas}.Signal`

const list = `GET ${path}`
const page = `document.paths.${path}.get.parameters.1.schema`
const headers = `document.paths.${path}.post.responses.201.headers`

test.each<[string, unknown, string | RegExp]>([
  [`document.paths.${path}`, undefined, `${list} removed`],
  [
    `document.paths.${path}.get.parameters.2`,
    { name: 'new', in: 'query', required: true },
    /GET .*: parameter: required was .*, is .*"query new"/,
  ],
  [`document.paths.${path}.get.operationId`, 'other', /operationId \w+ removed/],
  [`document.paths.${path}.get.security`, [], `${list}: has another security`],
  [
    'document.components.securitySchemes.bearer.scheme',
    'basic',
    'security scheme/bearer: scheme was "bearer", is "basic"',
  ],
  ['document.components.securitySchemes.bearer', undefined, 'security scheme/bearer removed'],
  [`${page}.default`, 7, /GET .*: default was \d+, is 7/],
  [`${page}.default`, undefined, /GET .*: default was \d+, is undefined/],
  [`document.paths.${path}.post.responses.422`, undefined, `${post}: status 422 removed`],
  [`${headers}.X-Request-Id`, undefined, `${post}: 201 header/X-Request-Id removed`],
  [`${headers}.X-Request-Id.required`, false, /201 header: required was .*"X-Request-Id"/],
  [
    `${headers}.X-Request-Id.schema.type`,
    'integer',
    `${post}: 201 header/X-Request-Id: type was "string", is "integer"`,
  ],
  [`${metadata}.metadata`, undefined, `${post}: body/metadata removed`],
  [`${metadata}.value.type`, 'integer', `${post}: body/value: type was "string", is "integer"`],
  [`${metadata}.value.enum`, ['positive'], `${post}: body/value: enum was ["positive","negative"], is ["positive"]`],
  [`${metadata}.value.maxLength`, 3, `${post}: body/value: maxLength was undefined, is 3`],
  [`${metadata}.value.exclusiveMinimum`, true, `${post}: body/value: exclusiveMinimum was undefined, is true`],
  [`${metadata}.value.exclusiveMaximum`, true, `${post}: body/value: exclusiveMaximum was undefined, is true`],
  [`${metadata}.value.default`, 'positive', `${post}: body/value: default was undefined, is "positive"`],
  [`${metadata}.metadata.minProperties`, 3, /body\/metadata: minProperties was \w+, is 3/],
  [
    `${metadata}.metadata.additionalProperties`,
    undefined,
    `${post}: body/metadata: additionalProperties was true, is undefined`,
  ],
  [
    `${schemas}.NewSignal.required`,
    ['value', 'metadata'],
    `${post}: body: required was ["value"], is ["value","metadata"]`,
  ],
  [`${recorded}.properties.created_at`, undefined, `${post}: 201/data/created_at removed`],
  [`${recorded}.properties.id.type`, 'string', `${post}: 201/data/id: type was "integer", is "string"`],
  [`${recorded}.properties.id.nullable`, true, `${post}: 201/data/id: nullable was undefined, is true`],
  [
    `${recorded}.properties.value.enum`,
    ['positive'],
    `${post}: 201/data/value: enum was ["positive","negative"], is ["positive"]`,
  ],
  [
    `${recorded}.properties.value.enum`,
    undefined,
    `${post}: 201/data/value: enum was ["positive","negative"], is undefined`,
  ],
  [`${recorded}.additionalProperties`, false, `${post}: 201/data: additionalProperties was undefined, is false`],
  [`${recorded}.required`, ['id'], /201\/data: required was .*"value".*, is \["id"\]/],
  [`${schemas}.HistoryPage.properties.data.items`, undefined, /history: 200\/data: items was .*, is undefined/],
  ['settings.PORT', undefined, 'setting PORT removed'],
  ['settings.PORT.type', 'text', 'setting PORT is text'],
  ['settings.PORT.fallback', '80', 'setting PORT has another default'],
  ['metrics.prompt_signals_signals_total', undefined, 'metric prompt_signals_signals_total is removed'],
  ['metrics.prompt_signals_signals_total', 'gauge', 'metric prompt_signals_signals_total is a gauge'],
])('a change of %s to %p is a break', (place, value, message) => {
  const found = findBreaks(now, change(place, value))
  expect(found).toContainEqual(typeof message === 'string' ? message : expect.stringMatching(message))
})

test.each(['oneOf', 'anyOf', 'allOf', 'not'])('a change inside of %s is a break', (keyword) => {
  const [old, changed] = ['string', 'integer'].map((type) =>
    change(`${recorded}.properties.id.${keyword}`, keyword === 'not' ? { type } : [{ type }]),
  ) as [Interface, Interface]
  expect(findBreaks(old, changed)).toContainEqual(
    expect.stringMatching(new RegExp(`201/data/id: ${keyword} was .*, is `)),
  )
})

test.each([
  ['serve', 'orgs list', 'removed'],
  ['serve [--port P]', 'serve', 'no longer takes [--port P]'],
  ['serve [--host H]', 'serve [--host]', 'no longer takes [--host H]'],
  ['serve [--host H]', 'serve --host H', 'requires --host H'],
  ['serve', 'serve FILE', 'requires FILE'],
  ['serve [DIR]', 'serve DIR', 'no longer takes [DIR]'],
  ['serve', 'serve --org ORG|--url URL', 'requires --org ORG|--url URL'],
  ['serve [--org ORG|--url URL]', 'serve --org ORG|--url URL', 'requires --org ORG|--url URL'],
  ['serve --org ORG|--url URL', 'serve --org ORG', 'no longer takes --org ORG|--url URL'],
  ['serve --plan free|team', 'serve --plan free', 'no longer takes --plan free|team'],
  ['serve [--at TIME|none]', 'serve [--at TIME]', 'no longer takes [--at TIME|none]'],
  ['serve [--events A,B|all]', 'serve [--events A,B]', 'no longer takes [--events A,B|all]'],
  ['serve FILE|-', 'serve FILE', 'no longer takes FILE|-'],
  ['serve ORG DAYS|none', 'serve ORG DAYS', 'no longer takes DAYS|none'],
  ['serve OLD NEW', 'serve NEW OLD', 'no longer takes OLD'],
  ['serve ID', 'serve [DIR] ID', 'no longer takes ID'],
  ['serve [--overlap 24h]', 'serve [--overlap 12h]', 'no longer takes [--overlap 24h]'],
  ['serve [--origin O]…', 'serve [--origin O]', 'no longer takes [--origin O]…'],
  ['serve [--path P]', 'serve [--path P --branch B]', 'no longer takes [--path P]'],
])('a change of the command %s to %s is a break', (old, changed, message) => {
  const found = findBreaks({ ...now, commands: [old] }, { ...now, commands: [changed] })
  expect(found).toContainEqual(`command serve ${message}`)
})

test.each<[string, unknown]>([
  [`${metadata}.value.enum`, undefined],
  [`${metadata}.value.enum`, ['positive', 'negative', 'neutral']],
  [`${metadata}.value.nullable`, true],
  [`${metadata}.subject.maxLength`, 1_000],
  [`${metadata}.subject.pattern`, undefined],
  [`${recorded}.properties.value.enum`, ['positive', 'negative', 'neutral']],
  [`${recorded}.properties.value.description`, 'What it says'],
  [`${schemas}.HistoryEntry.properties.title.nullable`, undefined],
  [`${schemas}.NewSignal.required`, []],
  [`${headers}.New`, { schema: { type: 'string' }, required: true }],
])('a change of %s to %p breaks nothing', (place, value) => {
  expect(findBreaks(now, change(place, value))).toEqual([])
})

test.each([
  ['serve FILE', 'serve [FILE|-] [DIR] [--host H]'],
  ['serve --plan free [--origin O]', 'serve --plan free|team [--origin O|all]…'],
])('a change of the command %s to %s breaks nothing', (old, changed) => {
  expect(findBreaks({ ...now, commands: [old] }, { ...now, commands: [changed] })).toEqual([])
})

test('nothing is frozen after the release of 1.0', () => {
  requireUnreleased('# Changelog\n\n## 1.0.0 (unreleased)\n')
  const released = '# Changelog\n\n## 1.1.0 (unreleased)\n\n## 1.0.0 (2026-12-01)\n'
  expect(() => requireUnreleased(released)).toThrow('1.0.0 is released')
})

test('what is added breaks nothing', () => {
  const more = change(`${recorded}.properties.note`, { type: 'string' })
  more.settings = { ...now.settings }
  more.settings.NEW_SETTING = { type: 'text', fallback: null }
  more.document.components.schemas.NewSignal.properties.note = { type: 'string' }
  more.document.components.schemas.Added = {}
  more.document.paths['/api/v1/new'] = { get: { responses: {} } }
  expect(findBreaks(now, more)).toEqual([])
  expect(findBreaks(more, now)).toEqual([
    'schema Added removed',
    `${post}: body/note removed`,
    `${post}: 200/data/note removed`,
    `${post}: 201/data/note removed`,
    'GET /api/v1/new removed',
    'setting NEW_SETTING removed',
  ])
})
