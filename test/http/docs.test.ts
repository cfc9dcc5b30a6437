import { beforeAll, describe, expect, test } from 'bun:test'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Value } from '@sinclair/typebox/value'
import type { OpenAPIV3 } from 'openapi-types'
import { createApp } from '../../src/app.ts'
import { NewHistoryEntry } from '../../src/history/schema.ts'
import { RequestContext } from '../../src/http/request_context.ts'
import { serveFile } from '../../src/http/static_file.ts'
import { scopes } from '../../src/lib/scopes.ts'
import { isPromptId } from '../../src/prompts/find.ts'
import { NewSignal } from '../../src/signals/schema.ts'
import { compileSchema, createContract, withoutNames } from '../contract.ts'
import { useService } from '../use.ts'

type Operation = Omit<OpenAPIV3.OperationObject, 'parameters'> & { parameters: OpenAPIV3.ParameterObject[] }

const historyPath = '/api/v1/prompts/{prompt_id}/history'
const signalsPath = '/api/v1/prompts/{prompt_id}/signals'

/** A generated client has a type of each name. */
const schemaNames = `ApiKey ApiKeyChange ApiKeyList AuditEntry AuditEntryList BatchError BatchResult BatchSignal
  ChangeCounts ChangeDay ChangeDays ChangeDaysAnswer ChangeImpact ChangeImpactPage ChangeSignals ChangedPrompt
  ComparedSide CreatedApiKey CreatedSignal CreatedWebhookEndpoint CursorPagination DataHealth EntriesToRemove EntryDiff
  ErasedFile ErasedFileList ErasedSignal ErasedSignals Forbidden GithubWebhook HistoryBatch HistoryBatchResult
  HistoryEntry HistoryPage Impact ImpactPage InternalError KeyRotation LiveWindow MetadataSplit NewApiKey
  NewHistoryEntry NewPrompt NewSignal NewSignalBatch NewWebhookEndpoint NotFound OwnApiKey Pagination Prompt
  PromptChange PromptImpact PromptImpactList PromptList RateLimited RecentSignals RecordedBatch RecordedHistoryEntry
  RecordedSignal RecordedSignalList RemovedHistoryEntries RemovedHistoryEntry RemovedWebhookEndpoint RenamedRepository
  Repository RepositoryList RepositoryRename ShownApiKey ShownGithubWebhook ShownOwnApiKey ShownPrompt
  ShownWebhookEndpoint SideBySide SideBySideAnswer Signal SignalDay SignalStats StatsPoint Unauthorized Unavailable
  Usage UsageData UsageDay UsagePrompt User ValidationError WebhookDelivery WebhookDeliveryList WebhookEndpoint
  WebhookEndpointChange WebhookEndpointList WebhookEndpointRotation WebhookEndpointTest WebhookRedelivery`

const service = useService()
let document: OpenAPIV3.Document
let history: Operation
let recording: Operation
let signals: Operation

beforeAll(async () => {
  document = (await (await fetch(`${service.url}/docs/json`)).json()) as OpenAPIV3.Document
  const { paths } = withoutNames(document)
  history = paths[historyPath]?.get as Operation
  recording = paths[historyPath]?.post as Operation
  signals = paths[signalsPath]?.post as Operation
})
const operations = () =>
  Object.entries(withoutNames(document).paths).flatMap(([path, methods = {}]) =>
    Object.entries(methods as Record<string, OpenAPIV3.OperationObject>).map(([method, operation]) => ({
      path,
      method,
      operation,
    })),
  )

describe('the document', () => {
  test('is valid OpenAPI', async () => {
    expect(await new Validator().validate({ ...document })).toEqual({ valid: true })
  })

  test('speaks of a body only where one is sent', () => {
    const wrong = operations().filter(({ operation: { requestBody, responses } }) => {
      const invalid = responses['422'] as OpenAPIV3.ResponseObject | undefined
      return !requestBody && invalid?.description.includes('body')
    })
    expect(wrong.map(({ path, method }) => `${method} ${path}`)).toEqual([])
  })

  test('has one schema for each type, under the name that a generated client gives it', () => {
    expect(Object.keys(document.components?.schemas ?? {}).sort()).toEqual(schemaNames.split(/\s+/))
    for (const path of [signalsPath, historyPath]) {
      expect(document.paths[path]?.post?.responses['422']).toMatchObject({
        content: { 'application/json': { schema: { $ref: '#/components/schemas/ValidationError' } } },
      })
    }
    expect(document.components?.schemas?.HistoryPage).toMatchObject({
      properties: { data: { items: { $ref: '#/components/schemas/HistoryEntry' } } },
    })
  })

  test('describes exactly the operations there are, and those on prompts with their statuses, content types and headers', () => {
    const served = createApp(service.services).routes.filter(
      ({ method, path }) => path.startsWith('/api/v1/') && method !== 'OPTIONS',
    )
    expect(operations().map(({ method, path }) => `${method.toUpperCase()} ${path}`)).toEqual(
      served.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`),
    )
    const limits = ['RateLimit', 'RateLimit-Policy']
    const rejections = {
      401: ['X-Request-Id', 'WWW-Authenticate'],
      403: ['X-Request-Id'],
      404: ['X-Request-Id'],
      422: ['X-Request-Id'],
      429: ['X-Request-Id', ...limits, 'Retry-After'],
      500: ['X-Request-Id', 'Retry-After'],
      503: ['X-Request-Id', 'Retry-After'],
    }
    const unchanged = { 200: ['X-Request-Id', 'Link', 'ETag', ...limits], 304: ['X-Request-Id', 'ETag'] }
    const created = { 201: ['X-Request-Id', ...limits, 'Idempotent-Replayed'] }
    expect(headersOf(history)).toEqual({ ...rejections, ...unchanged })
    expect(headersOf(recording)).toEqual({ ...rejections, ...created })
    expect(headersOf(signals)).toEqual({ ...rejections, ...created, 200: created[201] })
    for (const { responses } of [history, recording, signals]) {
      for (const [status, { content = {} }] of Object.entries(responses as Record<string, OpenAPIV3.ResponseObject>)) {
        expect([status, ...Object.keys(content)]).toEqual([status, ...(status === '304' ? [] : ['application/json'])])
      }
    }
    expect(history.requestBody).toBeUndefined()
    const { required, content } = signals.requestBody as OpenAPIV3.RequestBodyObject
    expect({ required, types: Object.keys(content) }).toEqual({ required: true, types: ['application/json'] })
  })

  test('says who made it and under which licence, and which values are times', () => {
    expect(document.info).toMatchObject({ contact: { name: expect.any(String) }, license: { name: 'MIT' } })
    const { schema } = (recording.requestBody as OpenAPIV3.RequestBodyObject).content['application/json'] ?? {}
    expect((schema as OpenAPIV3.SchemaObject).properties?.created_at).toMatchObject({ format: 'date-time' })
  })

  test('declares every tag that an operation has', () => {
    const declared = (document.tags ?? []).map(({ name }) => name)
    const used = new Set(operations().flatMap(({ operation }) => operation.tags ?? []))
    expect([...used].sort()).toEqual(declared.sort())
  })

  test('gives no example of an optional parameter, which the page would send unasked', () => {
    const parameters = operations().flatMap(({ operation }) => operation.parameters as OpenAPIV3.ParameterObject[])
    expect(parameters.filter(({ required, example }) => !required && example !== undefined)).toEqual([])
  })

  test('asks for a bearer key on every operation', () => {
    for (const { operation } of operations()) expect(operation.security).toEqual([{ bearer: [] }])
    expect(document.components?.securitySchemes?.bearer).toMatchObject({ type: 'http', scheme: 'bearer' })
  })

  test('rejects what it does not promise', () => {
    const { check } = createContract(document)
    const headers = new Headers({ 'content-type': 'application/json', 'x-request-id': 'r' })
    const pagination = { current_page: 1, total_pages: 0, total_count: 0, per_page: 25 }
    const checkPage = (more: object, status = 200) =>
      check('GET', historyPath, status, headers, JSON.stringify({ data: [], pagination, ...more }))
    headers.set('link', '</>; rel="first"')
    expect(() => checkPage({})).toThrow("headers  must have required property 'etag'")
    headers.set('etag', `"${'0'.repeat(36)}"`)
    checkPage({})
    expect(() => checkPage({ more: 1 })).toThrow('additional properties')
    expect(() => checkPage({ data: [{ id: 'x' }] })).toThrow('/data/0/id must be integer')
    expect(() => checkPage({}, 299)).toThrow('status 299 is not one of')
  })

  test('gives examples that keep what it promises', () => {
    const contract = createContract(document)
    for (const { path, method, operation } of operations()) {
      const responses = Object.entries(operation.responses as Record<string, OpenAPIV3.ResponseObject>)
      for (const [status, response] of responses) {
        const headers = Object.entries(response.headers as Record<string, OpenAPIV3.HeaderObject>)
        const exampleHeaders = new Headers(headers.map(([name, { example }]) => [name, String(example)]))
        const shown = Object.entries(response.content ?? { none: {} })
        for (const [type, { example }] of shown) {
          if (response.content) exampleHeaders.set('content-type', type)
          const text = typeof example === 'string' ? example : JSON.stringify(example)
          contract.check(method.toUpperCase(), path, Number(status), exampleHeaders, text ?? '')
        }
      }
    }
    for (const { operation } of operations()) {
      const { content } = (operation.requestBody ?? {}) as Partial<OpenAPIV3.RequestBodyObject>
      const { schema, example } = content?.['application/json'] ?? {}
      if (content) expect(compileSchema(schema ?? {})(example)).toBe(true)
    }
    for (const [{ requestBody }, type] of [
      [signals, NewSignal],
      [recording, NewHistoryEntry],
    ] as const) {
      const { example } = (requestBody as OpenAPIV3.RequestBodyObject).content['application/json'] ?? {}
      expect(Value.Check(type, example)).toBe(true)
    }
    expect(isPromptId(signals.parameters.find(({ name }) => name === 'prompt_id')?.example)).toBe(true)
  })
})

test('the example of a 422 is what the service says of an empty body', async () => {
  const tenant = await service.createTenant()
  const { key, id } = await service.createKey(tenant, [...scopes])
  const ids: Record<string, string> = { key_id: id, prompt_id: tenant.prompt }
  const shown = ['/keys', '/prompts', '/webhooks/endpoints', '/keys/{key_id}', '/prompts/{prompt_id}']
  const asked = operations().filter(
    ({ path, operation }) => operation.requestBody && shown.some((one) => path === `/api/v1${one}`),
  )
  expect(asked).toHaveLength(shown.length)
  for (const { path, method, operation } of asked) {
    const { content } = operation.responses['422'] as OpenAPIV3.ResponseObject
    const { request_id: _, ...error } = content?.['application/json']?.example?.error ?? {}
    const url = path.replace(/\{(\w+)\}/, (_, name: string) => ids[name] ?? '')
    const { body } = await service.call(method.toUpperCase(), url, { key, json: {} })
    expect(body.error).toMatchObject(error)
  }
})

describe('the page', () => {
  test('and what it loads come from the service alone, under a policy that allows nothing else', async () => {
    const console = await fetch(`${service.url}/`)
    for (const path of ['/docs', '/docs/']) {
      const page = await fetch(service.url + path)
      expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(page.headers.get('content-security-policy')).toStartWith("default-src 'none'; script-src 'self';")
      for (const name of ['x-content-type-options', 'referrer-policy', 'cross-origin-opener-policy']) {
        expect({ [name]: page.headers.get(name) }).toEqual({ [name]: console.headers.get(name) as string })
      }
      const addresses = [...(await page.text()).matchAll(/(?:src|href)="([^"]*)"/g)].map(([, address]) => address ?? '')
      const loaded = addresses.filter((address) => !address.startsWith('data:')).map((a) => new URL(a, page.url).href)
      // The first and the last are links, of which nothing is loaded.
      expect(loaded.sort()).toEqual([
        `${service.url}/`,
        ...['json', 'start.js', 'swagger-ui-bundle.js', 'swagger-ui.css'].map((name) => `${service.url}/docs/${name}`),
        `${service.url}/guides/overview`,
      ])
      for (const address of loaded) expect((await fetch(address)).status).toBe(200)
    }
  })

  test.each([
    ['/docs', 'text/html; charset=utf-8'],
    ['/docs/', 'text/html; charset=utf-8'],
    ['/docs/json', 'application/json'],
    ['/docs/start.js', 'text/javascript; charset=utf-8'],
    ['/docs/swagger-ui-bundle.js', 'text/javascript; charset=utf-8'],
    ['/docs/swagger-ui.css', 'text/css; charset=utf-8'],
  ])('sends %s plain or gzipped, each with its own tag, and only when it has changed', async (path, type) => {
    const get = async (headers: Record<string, string>) => {
      const response = await fetch(service.url + path, { headers })
      return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() }
    }
    const plain = await get({ 'accept-encoding': 'identity' })
    const gzipped = await get({ 'accept-encoding': 'gzip, br' })
    expect(plain).toMatchObject({
      status: 200,
      headers: { 'content-type': type, 'x-content-type-options': 'nosniff' },
    })
    expect(plain.headers).not.toHaveProperty('content-encoding')
    expect(gzipped).toMatchObject({ status: 200, text: plain.text, headers: { 'content-encoding': 'gzip' } })
    const etag = plain.headers.etag as string
    expect(gzipped.headers.etag).not.toBe(etag)
    const again = await get({ 'accept-encoding': 'identity', 'if-none-match': etag })
    expect(again).toMatchObject({ status: 304, text: '', headers: { etag } })
    expect((await get({ 'if-none-match': '"older"' })).status).toBe(200)
  })

  test('reads a file once, unless it could not be read', async () => {
    let reads = 0
    const serve = serveFile('text/plain', async () => {
      reads += 1
      if (reads === 1) throw new Error('too many open files')
      return `read ${reads}`
    })
    const ask = async () => (await serve(new RequestContext(new Request('http://localhost')))).text()
    expect(await ask().catch((error: Error) => error.message)).toBe('too many open files')
    expect([await ask(), await ask()]).toEqual(['read 2', 'read 2'])
  })
})

function headersOf({ responses }: Operation): Record<string, string[]> {
  const entries = Object.entries(responses as Record<string, OpenAPIV3.ResponseObject>)
  return Object.fromEntries(entries.map(([status, { headers = {} }]) => [status, Object.keys(headers)]))
}
