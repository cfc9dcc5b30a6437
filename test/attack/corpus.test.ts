// Every hostile input of the corpus is answered in the envelope or by a closed connection, and leaves the service as it was.
import { expect, test } from 'bun:test'
import { inFullRun } from '../full.ts'
import { entry } from '../service.ts'
import { exchange, formatRequest } from '../socket.ts'
import { useAdmin, useService, useTenant } from '../use.ts'
import * as corpus from './corpus.ts'

const atOnce = 20

type Input = { text: string; isCut?: true }
type Outcome = 'closed' | 'bare' | number

const service = useService()
const tenant = useTenant(service, 1_000_000)
const admin = useAdmin(service, tenant)

const shorten = (text: string) => JSON.stringify(text.length > 300 ? `${text.slice(0, 300)}… (${text.length})` : text)

/** Throws unless the answer is one that a caller can make something of. */
function outcomeOf(answer: string): Outcome {
  if (answer === '') return 'closed'
  const [head = '', ...rest] = answer.split('\r\n\r\n')
  const body = rest.join('\r\n\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1])
  // The runtime's own answers to what is no HTTP, before the service sees it: see docs/operating.md.
  if (/^HTTP\/1\.1 (400|413|431|505) [^\r]*\r\nConnection: close$/.test(head) && body === '') return 'bare'
  if (!(status >= 200 && status < 500)) throw new Error(`answered with ${shorten(answer)}`)
  if (status < 400) return status
  const { error, ...others } = JSON.parse(Buffer.from(body, 'latin1').toString())
  const id = /^x-request-id: *(\S+)/im.exec(head)?.[1]
  expect({ others, id: error.request_id }).toEqual({ others: {}, id: id as string })
  expect([typeof error.code, typeof error.message]).toEqual(['string', 'string'])
  return status
}

/** Sends all of them, some at the same time, and returns their outcomes. In between, the service answers normally. */
async function attack(inputs: Input[]): Promise<Outcome[]> {
  const outcomes = new Set<Outcome>()
  const failures: string[] = []
  for (let next = 0; next < inputs.length; next += atOnce) {
    await Promise.all(
      inputs.slice(next, next + atOnce).map(async (input) => {
        try {
          outcomes.add(outcomeOf(await exchange(service.url, input.text, { halfClose: input.isCut === true })))
        } catch (error) {
          failures.push(`${shorten(input.text)}: ${(error as Error).message}`)
        }
      }),
    )
    expect((await service.getHistory(tenant.prompt, tenant.key)).status).toBe(200)
    expect((await service.postSignal(tenant.prompt, tenant.key)).status).toBe(201)
  }
  expect(failures).toEqual([])
  return [...outcomes]
}

/** Only what is no HTTP may be left to the runtime. */
async function attackHttp(inputs: Input[]): Promise<Outcome[]> {
  const outcomes = await attack(inputs)
  expect(outcomes).not.toContain('closed')
  return outcomes
}

const request = (method: string, path: string, lines: string[], body = ''): Input => ({
  text: formatRequest(method, path, [...lines, ...(method === 'GET' ? [] : [`Content-Length: ${body.length}`])], body),
})

const asBytes = (text: string) => Buffer.from(text.toWellFormed()).toString('latin1')
const bearer = () => `Authorization: Bearer ${admin.key}`
const json = 'Content-Type: application/json'
const signal = '{"value":"positive"}'
const signals = () => `/api/v1/prompts/${tenant.prompt}/signals`
const history = () => `/api/v1/prompts/${tenant.prompt}/history`
/** One route of each kind, and in a full run the others like it. */
const lists = () => ['/api/v1/keys', history(), ...inFullRun(['/api/v1/prompts', '/api/v1/audit'], [])]
const writes = () => [signals(), history(), ...inFullRun(['/api/v1/keys', '/api/v1/prompts'], [])]

test('as ids in paths', async () => {
  const segments = [...corpus.nastyTexts.map((text) => encodeURIComponent(text.toWellFormed())), ...corpus.rawSegments]
  const inputs = segments.flatMap((segment) => [
    request('GET', `/api/v1/prompts/${segment}/history`, [bearer()]),
    request('GET', `/api/v1/keys/${segment}`, [bearer()]),
    request('GET', `/api/v1/${segment}`, [bearer()]),
    request('POST', `/api/v1/prompts/${segment}/signals`, [bearer(), json], signal),
    request('PATCH', `/api/v1/prompts/${segment}`, [bearer(), json], '{"name":"x"}'),
    request('DELETE', `/api/v1/keys/${segment}`, [bearer()]),
    request('POST', `/webhooks/github/${segment}`, [json, `X-Hub-Signature-256: sha256=${'0'.repeat(64)}`], '{}'),
    request('POST', `/${segment}`, [json], '{}'),
    request('GET', `/prompts/${segment}`, []),
  ])
  expect(await attackHttp(inputs)).toContain(404)
})

test('as queries', async () => {
  const inputs = corpus.queries.flatMap((query) => lists().map((path) => request('GET', path + query, [bearer()])))
  expect(await attackHttp(inputs)).toEqual(expect.arrayContaining([200, 422]))
})

test('as headers', async () => {
  const inputs = corpus.headers.flatMap((line) => [
    request('GET', history(), [bearer(), line]),
    request('POST', signals(), [bearer(), json, line], signal),
    request('POST', '/api/v1/prompts', [bearer(), json, line], '{"name":"x"}'),
  ])
  expect(await attack(inputs)).toContain(201)
})

test('as bodies, and as every text in them', async () => {
  const texts = corpus.nastyTexts.flatMap((text) => [
    JSON.stringify({ name: text, id: text, repository: text, path: text, preset: text, expires_at: text }),
    JSON.stringify({ name: text }),
    JSON.stringify({ name: 'x', repository: 'acme/prompts', path: text }),
    JSON.stringify({ value: 'positive', metadata: { [text]: text } }),
    JSON.stringify(entry({ user: { name: text, email: text }, commit_sha: text, branch_name: text, created_at: text })),
    JSON.stringify({ [text]: text }),
  ])
  const inputs = [...corpus.bodies, ...texts.map(asBytes)].flatMap((body) =>
    writes().map((path) => request('POST', path, [bearer(), json], body)),
  )
  expect(await attackHttp(inputs)).toEqual(expect.arrayContaining([201, 422]))
})

test('as raw bytes on a connection', async () => {
  await attack(corpus.raw)
})
