import { beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { generateKey } from '../../src/keys/verify.ts'
import * as corpus from '../attack/corpus.ts'
import { inFullRun } from '../full.ts'
import { entry, type Tenant } from '../service.ts'
import { countOf } from '../signals/fixtures.ts'
import { useService } from '../use.ts'

const requests = inFullRun(10_000, 2_000)
const seed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31)

const limits = [100_000, 5, 0]
const service = useService()
let tenants: Tenant[]

beforeAll(async () => {
  tenants = await Promise.all(limits.map((limit) => service.createTenant(limit)))
  for (const { prompt } of tenants) await service.addHistory(prompt, [entry(), entry(), entry()])
})

/** Text that a URL can carry; half of it not valid when decoded. */
const oddSegment = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }).map((text) => encodeURIComponent(text.toWellFormed())),
  fc.constantFrom('', '?', '#', ...corpus.rawSegments),
)

const oddText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom('__proto__', '\u0000', '', '\ud800'),
)

const oddJson = fc.oneof(
  fc.json({ maxDepth: 6 }),
  fc
    .record({ value: fc.constantFrom('positive', 'negative', 'x', null, 1), metadata: fc.jsonValue() })
    .map((value) => JSON.stringify(value)),
  fc.dictionary(oddText, oddText).map((metadata) => JSON.stringify({ value: 'positive', metadata })),
  fc
    .tuple(fc.integer(), fc.integer({ min: -400, max: 400 }))
    .map(([n, e]) => `{"value":"negative","metadata":{"n":${n}e${e}}}`),
  fc.integer({ min: 1, max: 60 }).map((n) => `{"value":"positive","metadata":${'{"a":'.repeat(n)}1${'}'.repeat(n)}}`),
  fc.json().map((text) => text.slice(0, -1)),
  fc.constantFrom('', '{', 'null', '[]', '\uFEFF{"value":"positive"}', '{"value":"positive"}'),
)

const oddBatch = fc.array(oddJson, { maxLength: 5 }).map((items) => `{"signals":[${items.join()}]}`)

const body = fc.oneof(
  { weight: 4, arbitrary: oddJson.map((text) => new TextEncoder().encode(text)) },
  { weight: 2, arbitrary: oddBatch.map((text) => new TextEncoder().encode(text)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }) },
)

const authorization = () =>
  fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...tenants.map(({ key }) => `Bearer ${key}`)) },
    { weight: 1, arbitrary: fc.constantFrom('', 'Bearer', 'Basic x', 'bearer  psk_x', `Bearer ${generateKey()}`) },
    { weight: 1, arbitrary: fc.string({ maxLength: 60 }).map((text) => `Bearer ${text.replace(/[^\x21-\x7e]/g, '')}`) },
  )

const query = fc.oneof(
  fc.constant(''),
  fc
    .array(
      fc.tuple(
        fc.constantFrom('page', 'limit', 'PAGE', 'action', 'since'),
        fc.oneof(oddSegment, fc.bigInt().map(String)),
      ),
    )
    .map((pairs) => `?${pairs.map(([name, value]) => `${name}=${value.replace('#', '')}`).join('&')}`),
)

const request = () => {
  const promptId = fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(...tenants.map(({ prompt }) => prompt)) },
    { weight: 2, arbitrary: oddSegment },
  )
  const below = fc.constantFrom(...['/signals', '/signals', '/signals/batch', '/history', '/history', ''])
  const anyPath = fc.array(oddSegment, { maxLength: 5 }).map((parts) => parts.join('/'))
  const path = fc.oneof(
    { weight: 8, arbitrary: fc.tuple(promptId, below).map(([id, rest]) => `/api/v1/prompts/${id}${rest}`) },
    { weight: 1, arbitrary: anyPath.map((rest) => `/api/v1/${rest}`) },
    { weight: 1, arbitrary: anyPath.map((rest) => `/${rest}`) },
  )
  const all = fc.record({
    method: fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom('GET', 'POST') },
      { weight: 1, arbitrary: fc.constantFrom('HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS') },
    ),
    path,
    query,
    authorization: authorization(),
    contentType: fc.constantFrom('application/json', 'application/json', 'Application/JSON;q=1', 'text/plain', ''),
    requestId: fc.constantFrom('', 'given', 'not well formed', 'x'.repeat(300)),
    body,
  })
  // Above 16 KiB of head, the runtime itself answers 431, before the service is asked.
  return all.filter(({ path, query }) => path.length + query.length < 15_000)
}

test(`${requests} generated requests: no 5xx, no answer outside the contract, none that hangs (TEST_SEED=${seed})`, async () => {
  const statuses = new Map<number, number>()
  const generated = fc.sample(request(), { numRuns: requests, seed })

  async function send(request: (typeof generated)[number]) {
    const { method, path, query, authorization, contentType, requestId, body } = request
    const hasBody = method !== 'GET' && method !== 'HEAD'
    // The client itself fails on an answer that the served OpenAPI document does not describe.
    const { status } = await service.call(method, path + query, {
      headers: {
        authorization,
        'content-type': contentType,
        ...(requestId ? { 'x-request-id': requestId } : {}),
      },
      ...(hasBody ? { body: body as Bun.BodyInit } : {}),
    })
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    if (status >= 500)
      throw new Error(`${status} for ${method} ${path}${query} ${Buffer.from(body).toString('latin1')}`)
  }

  // Few of the random ones are recorded, or refused for the limit.
  for (const { prompt, key } of tenants) {
    const { status } = await service.postSignal(prompt, key)
    statuses.set(status, 1)
  }
  for (let next = 0; next < requests; next += 50) await Promise.all(generated.slice(next, next + 50).map(send))

  // Each kind of answer came up, so the requests reached every branch.
  expect([...statuses.keys()].sort()).toEqual([200, 201, 204, 401, 403, 404, 422, 429])
  for (const [index, tenant] of tenants.entries()) {
    const { used, rows } = await countOf(service, tenant)
    expect(used).toBe(rows)
    expect(used).toBeLessThanOrEqual(limits[index] as number)
  }
})
