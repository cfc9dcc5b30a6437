import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { assign } from '../../clients/typescript/src/assign.ts'
import { createClient } from '../../clients/typescript/src/index.ts'
import { entry } from '../service.ts'
import { serveInTest, useNewTenant, useService } from '../use.ts'

const service = useService()
const tenant = useNewTenant(service)
const folder = join(import.meta.dir, '../../clients/python')

/** Runs a program with `client` and `prompt`; returns what it gives to `show`. */
async function python(lines: string, url = service.url): Promise<unknown> {
  const program = `
import json, sys
from prompt_signals import Client, PromptSignalsError, assign
show = lambda value: print(json.dumps(value))
client, prompt = Client(sys.argv[1], sys.argv[2]), sys.argv[3]
${lines}`
  const command = ['python3', '-W', 'error', '-c', program, url, tenant.key, tenant.prompt]
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
  const child = Bun.spawn(command, { cwd: folder, env, stdout: 'pipe', stderr: 'pipe' })
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()])
  expect(errors).toBe('')
  return JSON.parse(output)
}

test('every operation of the file works', async () => {
  await service.addHistory(tenant.prompt, [entry({ created_at: '2020-01-01T00:00:00Z' })])
  const answers = await python(`
client.record(prompt, "positive", {"a": 1}, commit="c0ffee1")
results = client.record_many(prompt, [{"value": "negative"}, {"value": "maybe"}])
show({
  "results": [result["status"] for result in results],
  "listed": [signal["metadata"] for signal in client.signals(prompt, value="positive")],
  "exported": len(list(client.export(prompt))),
  "history": [entry["action"] for entry in client.history(prompt)],
  "counted": client.stats(prompt)["totals"]["total"],
  "verdicts": len(client.impact(prompt)["data"]),
  "compared": client.compare(prompt, "c0ffee1", "c0ffee2")["verdict"],
  "used": client.usage()["used"],
  "prompts": [one["id"] == prompt for one in client.prompts()],
})`)
  expect(answers).toEqual({
    results: [201, 422],
    listed: [{ a: 1, commit_sha: 'c0ffee1' }],
    exported: 2,
    history: ['deployed'],
    counted: 2,
    verdicts: 1,
    compared: 'undecided',
    used: 2,
    prompts: [true],
  })
})

test('an error has its status, code and details, also after it was sent from one process to another', async () => {
  const caught = `
import pickle
try:
  client.record(prompt, "maybe")
except PromptSignalsError as raised:
  error = pickle.loads(pickle.dumps(raised))
  show([error.status, error.code, error.details[0]["path"], error.request_id is not None, str(error)])`
  const message = 'The signal is not valid. /value must be positive or negative'
  expect(await python(caught)).toEqual([422, 'validation_error', '/value', true, message])
})

test('a value that is not JSON is an error before anything is sent', async () => {
  const caught = `
import decimal
try:
  client.record(prompt, "positive", {"price": decimal.Decimal(1)})
except TypeError as error:
  show(str(error))`
  const message = 'A Decimal cannot be sent: use text, numbers, booleans, None, lists and dicts.'
  expect(await python(caught, 'http://127.0.0.1:9')).toBe(message)
})

test('a key that no header can hold is an error before anything is sent', async () => {
  const caught = `
try:
  Client("http://127.0.0.1:9", "KEY").usage()
except ValueError as error:
  show(str(error))`
  expect(await python(caught.replace('KEY', 'psk_…'))).toContain("can't encode")
  expect(await python(caught.replace('KEY', 'psk_x\\n'))).toContain('Invalid header value')
})

test('times, booleans and lists are written as the service reads them', async () => {
  const counted = `
import datetime
now = datetime.datetime.now(datetime.timezone.utc)
client.record_many(prompt, [{"value": "positive", "created_at": now}])
show([
  client.stats(prompt, until=now + datetime.timedelta(days=1), since=now)["totals"]["total"],
  [one["archived"] for one in client.prompts(archived=False)],
  list(client.history(prompt, action=["pr_opened", "pr_closed"])),
])`
  expect(await python(counted)).toEqual([1, [false], []])
})

test('a lost answer is asked for again with the same key, and a used-up month is not', async () => {
  const keys: (string | null)[] = []
  const proxy = serveInTest(async (request) => {
    keys.push(request.headers.get('idempotency-key'))
    const answer = await fetch(service.url + new URL(request.url).pathname, request)
    return keys.length === 1 ? new Response('', { status: 502 }) : answer
  })
  await python('show(client.record(prompt, "positive")["id"])', proxy)
  expect(keys).toHaveLength(2)
  expect(keys[0]).toBe(keys[1] as string)
  expect(await python('show(len(list(client.signals(prompt))))')).toBe(1)

  await service.services.db.sql`
    update organisations set monthly_limit = 1 where public_id = ${tenant.org}`
  const refused = `
try:
  client.record(prompt, "positive")
except PromptSignalsError as error:
  show([error.status, error.limited_by])`
  expect(await python(refused, proxy)).toEqual([429, 'organisation_month'])
  expect(keys).toHaveLength(3)
})

test('a batch has a key for each signal, also where the caller gave none', async () => {
  const sent: string[] = []
  const proxy = serveInTest(async (request) => {
    sent.push(await request.text())
    return Response.json({ data: [] })
  })
  await python('show(client.record_many(prompt, [{"value": "positive", "idempotency_key": None}]))', proxy)
  expect(JSON.parse(sent[0] as string).signals[0].idempotency_key).toMatch(/^[0-9a-f]{32}$/)
})

test('sessions are assigned as by the package for TypeScript', async () => {
  const names = Array.from({ length: 200 }, (_, n) => `séance ${n}`)
  const experiment = { base: 'a'.repeat(40), head: 'b'.repeat(40), share: 0.3 }
  const assigned = await python(`show([assign(f"séance {n}", "a" * 40, "b" * 40, 0.3) for n in range(200)])`)
  expect(assigned).toEqual(names.map((name) => assign(name, experiment)))
})

test('an error of a proxy, in any form, keeps its status and is not repeated', async () => {
  const answers = [null, [], { error: null }, { error: 'Forbidden' }, { error: { code: 'x', details: null } }]
  let requests = 0
  const proxy = serveInTest(() => Response.json(answers[requests++], { status: 403 }))
  const refused = `
errors = []
for _ in range(5):
  try:
    client.usage()
  except PromptSignalsError as error:
    errors.append([error.status, str(error)])
show(errors)`
  const expected = answers.map(() => [403, 'The service answered with status 403.'])
  expect(await python(refused, proxy)).toEqual(expected)
  expect(requests).toBe(5)
})

test('an export may be silent for longer than a timeout, and goes on where the connection stalled', async () => {
  const lines = [1, 2, 3].map((id) => new TextEncoder().encode(`{"id":${id}}\n`))
  const asked: (string | null)[] = []
  const proxy = serveInTest((request) => {
    const after = new URL(request.url).searchParams.get('after')
    asked.push(after)
    const rest = lines.slice(Number(after)).values()
    const stream = new ReadableStream({
      async pull(controller) {
        const { value, done } = rest.next()
        // The first connection stalls after two lines, the third one from the start.
        if ((asked.length === 1 && value === lines[2]) || asked.length === 3) return new Promise(() => {})
        await Bun.sleep(500)
        if (done) controller.close()
        else controller.enqueue(value)
      },
    })
    return new Response(stream)
  })
  const exported = `
client = Client(sys.argv[1], sys.argv[2], timeout=0.25, retries=0)
ids = [signal["id"] for signal in client.export(prompt)]
try:
  list(client.export(prompt))
except PromptSignalsError as error:
  show([ids, error.status])`
  expect(await python(exported, proxy)).toEqual([[1, 2, 3], 0])
  expect(asked).toEqual([null, '2', null])
})

test('both clients list an entry of a history once, also when hundreds are recorded meanwhile', async () => {
  let newest = 300
  const proxy = serveInTest((request) => {
    const page = Number(new URL(request.url).searchParams.get('page'))
    newest = page === 1 ? 300 : 450
    const all = Array.from({ length: newest }, (_, n) => ({ id: newest - n }))
    const pagination = { total_pages: Math.ceil(newest / 100) }
    return Response.json({ data: all.slice(100 * (page - 1), 100 * page), pagination })
  })
  const client = createClient({ url: proxy, key: tenant.key })
  const listed = (await Array.fromAsync(client.history.list(tenant.prompt))).map(({ id }) => id)
  const expected = Array.from({ length: 300 }, (_, n) => n + 1)
  expect(listed.filter((id) => id <= 300).sort((a, b) => a - b)).toEqual(expected)
  expect(await python('show([entry["id"] for entry in client.history(prompt)])', proxy)).toEqual(listed)
})
