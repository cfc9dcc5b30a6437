// Every hostile input of the corpus is answered in the envelope or by a closed connection, and leaves the service as it was.
import { beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { scopes } from '../../src/http/caller.ts'
import { createKey } from '../../src/keys/manage.ts'
import { inFullRun } from '../full.ts'
import { useService, useTenant } from '../use.ts'
import { corpus } from './corpus.ts'

/** Far longer than the service's own deadlines: what takes longer hangs. */
const hangsAfterMs = 25_000
const atOnce = 20

type Input = { text: string; isCut?: true }
type Outcome = 'closed' | 'bare' | number

const service = useService()
const tenant = useTenant(service, 1_000_000)
let admin: string

beforeAll(async () => {
  const key = { org: tenant.org, name: 'admin', scopes: [...scopes], expiresAt: null }
  admin = (await createKey(service.services.db, service.clock, key)).key
})

/** Everything that the service sends until it has answered or closes the connection. */
function sendRaw({ text, isCut }: Input): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(new URL(service.url).port), host: '127.0.0.1', allowHalfOpen: true })
    let answer = ''
    const timer = setTimeout(() => reject(new Error(`hangs: ${shorten(text)}`)), hangsAfterMs)
    const end = () => {
      answer = answer.replace('HTTP/1.1 100 Continue\r\n\r\n', '')
      clearTimeout(timer)
      socket.destroy()
      resolve(answer)
    }
    socket.setEncoding('latin1')
    socket.on('data', (bytes) => {
      answer += bytes
      if (isWhole(answer)) end()
    })
    socket.on('end', end)
    socket.on('close', end)
    socket.on('error', end)
    if (isCut) socket.end(text, 'latin1')
    else socket.write(text, 'latin1')
  })
}

/** Whether the head and as much of a body as it promises have come. */
function isWhole(answer: string): boolean {
  if (/^HTTP\/1\.1 100 /.test(answer)) return isWhole(answer.slice(answer.indexOf('\r\n\r\n') + 4))
  const end = answer.indexOf('\r\n\r\n')
  if (end < 0) return false
  if (/^HTTP\/1\.1 304 /.test(answer)) return true
  const length = /^content-length: *(\d+)/im.exec(answer.slice(0, end))?.[1]
  return length !== undefined && answer.length - end - 4 >= Number(length)
}

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

/** Sends all of them, some at once, and says how many had which outcome; between them the service answers normally. */
async function attack(inputs: Input[]): Promise<Map<Outcome, number>> {
  const outcomes = new Map<Outcome, number>()
  const failures: string[] = []
  for (let next = 0; next < inputs.length; next += atOnce) {
    await Promise.all(
      inputs.slice(next, next + atOnce).map(async (input) => {
        try {
          const outcome = outcomeOf(await sendRaw(input))
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1)
        } catch (error) {
          failures.push(`${shorten(input.text)}: ${(error as Error).message}`)
        }
      }),
    )
    expect((await service.getHistory(tenant.prompt, tenant.key)).status).toBe(200)
    expect((await service.postSignal(tenant.prompt, tenant.key)).status).toBe(201)
  }
  expect(failures).toEqual([])
  return outcomes
}

/** A request as it stands on the wire; texts are its bytes. */
function request(method: string, path: string, lines: string[], body = ''): Input {
  const length = method === 'GET' ? [] : [`Content-Length: ${body.length}`]
  return { text: `${[`${method} ${path} HTTP/1.1`, 'Host: test', ...lines, ...length].join('\r\n')}\r\n\r\n${body}` }
}

const asBytes = (text: string) => Buffer.from(text.toWellFormed()).toString('latin1')
const bearer = () => `Authorization: Bearer ${admin}`
const json = 'Content-Type: application/json'
const signal = '{"value":"positive"}'
const signals = () => `/api/v1/prompts/${tenant.prompt}/signals`
const history = () => `/api/v1/prompts/${tenant.prompt}/history`
/** One route of each kind, and in a full run the others like it. */
const lists = () => ['/api/v1/keys', history(), ...inFullRun(['/api/v1/prompts', '/api/v1/audit'], [])]
const writes = () => [signals(), history(), ...inFullRun(['/api/v1/keys', '/api/v1/prompts'], [])]

/** Only what is no HTTP may be left to the runtime. */
const isAnswered = (outcomes: Map<Outcome, number>) => !outcomes.has('closed')

test('the corpus has a few hundred inputs', () => {
  expect(Object.values(corpus).flat().length).toBeGreaterThan(400)
})

test('as ids in paths', async () => {
  const segments = [...corpus.nastyTexts.map((text) => encodeURIComponent(text.toWellFormed())), ...corpus.rawSegments]
  const paths = segments.flatMap((segment) => [
    `/api/v1/prompts/${segment}/history`,
    `/api/v1/prompts/${segment}`,
    `/api/v1/keys/${segment}`,
    `/api/v1/${segment}`,
  ])
  const reads = paths.map((path) => request('GET', path, [bearer()]))
  const writes = segments.flatMap((segment) => [
    request('POST', `/api/v1/prompts/${segment}/signals`, [bearer(), json], signal),
    request('PATCH', `/api/v1/prompts/${segment}`, [bearer(), json], '{"name":"x"}'),
    request('DELETE', `/api/v1/keys/${segment}`, [bearer()]),
    request('POST', `/webhooks/github/${segment}`, [json, `X-Hub-Signature-256: sha256=${'0'.repeat(64)}`], '{}'),
    request('POST', `/${segment}`, [json], '{}'),
  ])
  expect(isAnswered(await attack([...reads, ...writes]))).toBe(true)
}, 120_000)

test('as queries', async () => {
  const inputs = corpus.queries.flatMap((query) => lists().map((path) => request('GET', path + query, [bearer()])))
  const outcomes = await attack(inputs)
  expect(isAnswered(outcomes)).toBe(true)
  expect([outcomes.has(200), outcomes.has(422)]).toEqual([true, true])
}, 120_000)

test('as headers', async () => {
  const inputs = corpus.headers.flatMap((line) => [
    request('GET', history(), [bearer(), line]),
    request('POST', signals(), [bearer(), json, line], signal),
    request('POST', '/api/v1/prompts', [bearer(), json, line], '{"name":"x"}'),
  ])
  expect((await attack(inputs)).has(201)).toBe(true)
}, 120_000)

test('as keys', async () => {
  const inputs = corpus.authorizations.flatMap((value) =>
    lists().map((path) => request('GET', path, [`Authorization: ${value}`])),
  )
  const outcomes = await attack(inputs)
  expect([...outcomes.keys()].filter((outcome) => outcome !== 401 && outcome !== 'bare')).toEqual([])
}, 120_000)

test('as bodies, and as every text in them', async () => {
  const texts = corpus.nastyTexts.flatMap((text) => [
    JSON.stringify({ name: text, id: text, repository: text, path: text, preset: text, expires_at: text }),
    JSON.stringify({ name: text }),
    JSON.stringify({ name: 'x', repository: 'acme/prompts', path: text }),
    JSON.stringify({ value: 'positive', metadata: { [text]: text } }),
    JSON.stringify({
      action: 'deployed',
      user: { name: text, email: text },
      commit_sha: text,
      branch_name: text,
      created_at: text,
    }),
    JSON.stringify({ [text]: text }),
  ])
  const inputs = [...corpus.bodies, ...texts.map(asBytes)].flatMap((body) =>
    writes().map((path) => request('POST', path, [bearer(), json], body)),
  )
  const outcomes = await attack(inputs)
  expect(isAnswered(outcomes)).toBe(true)
  expect([outcomes.has(201), outcomes.has(422)]).toEqual([true, true])
}, 240_000)

test('as declarations of a body', async () => {
  const inputs = corpus.encodings.flatMap((lines) =>
    [signals(), '/api/v1/keys'].map((path) => request('POST', path, [bearer(), lines], signal)),
  )
  const outcomes = await attack(inputs)
  expect([isAnswered(outcomes), outcomes.has(422)]).toEqual([true, true])
}, 120_000)

test('as raw bytes on a connection', async () => {
  await attack(corpus.raw)
}, 240_000)
