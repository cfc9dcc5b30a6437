// What 1.0 promised, every 1.x keeps. `bun scripts/freeze.ts` writes the files again, until 1.0 is released.
import { expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Interface, readInterface } from '../../scripts/interface.ts'
import { hashOf } from '../../src/db/migrations.ts'
import { migrations } from '../../src/platform.ts'
import { findBreaks } from './breaks.ts'

const folder = join(import.meta.dir, '1.0')
const now = await readInterface()
const hashes = Object.fromEntries(migrations.map((migration) => [migration.name, hashOf(migration)]))
const { document, ...others } = now

if (process.env.FREEZE === 'yes') {
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

test.each<[string, unknown, string | RegExp]>([
  [`document.paths.${path}`, undefined, `GET ${path} removed`],
  [
    `document.paths.${path}.get.parameters.2`,
    { name: 'new', in: 'query', required: true },
    /GET .*: query parameter new required/,
  ],
  [`document.paths.${path}.get.operationId`, 'other', /operationId \w+ removed/],
  [`document.paths.${path}.post.responses.422`, undefined, `${post}: status 422 removed`],
  [
    `document.paths.${path}.post.responses.201.headers.X-Request-Id`,
    undefined,
    `${post}: 201 header X-Request-Id removed`,
  ],
  [`${metadata}.metadata`, undefined, `${post}: body/metadata removed`],
  [`${metadata}.value.type`, 'integer', `${post}: body/value is integer, not string`],
  [`${metadata}.value.enum`, ['positive'], `${post}: body/value rejects negative`],
  [`${metadata}.value.maxLength`, 3, `${post}: body/value has a smaller maxLength`],
  [`${metadata}.metadata.minProperties`, 3, `${post}: body/metadata has a larger minProperties`],
  [`${schemas}.NewSignal.required`, ['value', 'metadata'], `${post}: body requires metadata`],
  [`${recorded}.properties.created_at`, undefined, `${post}: 201/data/created_at removed`],
  [`${recorded}.properties.id.type`, 'string', `${post}: 201/data/id is string, not integer`],
  [`${recorded}.properties.id.nullable`, true, `${post}: 201/data/id can be null`],
  [`${recorded}.required`, ['id'], `${post}: 201/data may lack value`],
  ['settings.PORT', undefined, 'setting PORT removed'],
  ['settings.PORT.type', 'text', 'setting PORT is text'],
  ['settings.PORT.fallback', '80', 'setting PORT has another default'],
  ['metrics.prompt_signals_signals_total', undefined, 'metric prompt_signals_signals_total is removed'],
  ['metrics.prompt_signals_signals_total', 'gauge', 'metric prompt_signals_signals_total is a gauge'],
  ['commands', ['orgs list'], 'command serve removed'],
  ['commands', ['serve [--host H]'], 'command serve --port removed'],
  ['commands', ['serve [--host] [--port P] [--demo]'], 'command serve --host takes another value'],
  ['commands', ['serve --host H [--port P] [--demo]'], 'command serve --host required'],
  ['commands', ['serve FILE [--host H] [--port P] [--demo]'], 'command serve takes other words'],
  ['commands', ['orgs create --name N --plan free [--monthly-limit N]'], 'command orgs create --plan team removed'],
])('a change of %s to %p is a break', (place, value, message) => {
  const found = findBreaks(now, change(place, value))
  expect(found).toContainEqual(typeof message === 'string' ? message : expect.stringMatching(message))
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
