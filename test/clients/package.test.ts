// The package as it is installed: into an empty project, on each runtime.
import { beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { assign } from '../../clients/typescript/src/assign.ts'
import { createClient } from '../../clients/typescript/src/index.ts'
import { launchBrowser } from '../browser.ts'
import { readBlock } from '../documents.ts'
import { inFullRun } from '../full.ts'
import { createFolder, eventually } from '../program.ts'
import { entry, type Tenant } from '../service.ts'
import { serveInTest, useNewTenant, useService } from '../use.ts'
import { createNetwork, type Fault, python, root } from './network.ts'

const service = useService()
const tenant = useNewTenant(service)
const project = createFolder()
const [deno = ''] = new Bun.Glob('@deno/*/deno').scanSync({ cwd: join(root, 'node_modules'), absolute: true })
let packed: string[]

async function run(command: string[], cwd = project, env = {}): Promise<string> {
  const child = Bun.spawn(command, { cwd, env: { ...process.env, ...env }, stdout: 'pipe', stderr: 'pipe' })
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()])
  expect({ code: await child.exited, errors: errors.replace(/^npm .*\n/gm, '') }).toEqual({ code: 0, errors: '' })
  return output
}

beforeAll(async () => {
  // As in a new checkout.
  await rm(join(root, 'clients/typescript/src/openapi.d.ts'), { force: true })
  const pack = ['npm', 'pack', './clients/typescript', '--foreground-scripts=false', '--json', '--pack-destination']
  const [{ filename, files }] = JSON.parse(await run([...pack, project], root))
  packed = files.map(({ path }: { path: string }) => path).sort()
  writeFileSync(join(project, 'package.json'), '{"type":"module"}')
  await run(['npm', 'install', '--offline', '--no-audit', '--no-fund', `./${filename}`])
})

test('the package has what it needs, and nothing else', () => {
  const modules = ['api', 'assign', 'buffer', 'client', 'export', 'index', 'request', 'signals']
  const files = modules.flatMap((name) => [`dist/${name}.d.ts`, `dist/${name}.js`])
  expect(packed).toEqual([...files, 'README.md', 'dist/openapi.d.ts', 'package.json'].sort())
})

test.each([
  ['signals', 2_500],
  ['index', 6_000],
])('%s takes at most %d bytes, minified and compressed', async (name, limit) => {
  const entrypoints = [join(project, `node_modules/prompt-signals-client/dist/${name}.js`)]
  const { outputs } = await Bun.build({ entrypoints, minify: true })
  expect(gzipSync(await (outputs[0] as Blob).text(), { level: 9 }).length).toBeLessThanOrEqual(limit)
})

const javascript = `
import { createClient, createSignalBuffer } from 'prompt-signals-client'
import { createSignals } from 'prompt-signals-client/signals'
const { URL, KEY, PROMPT } = globalThis.process.env
const show = (value) => console.log(JSON.stringify(value))
`
const inJavascript = {
  work: `
const client = createClient({ url: URL, key: KEY })
await createSignals({ url: URL, key: KEY }).record(PROMPT, 'positive', { commit: 'c0ffee1' })
await client.signals.recordMany(PROMPT, [{ value: 'negative' }, { value: 'maybe' }])
const buffer = createSignalBuffer({ signals: client.signals })
buffer.record(PROMPT, 'positive')
await buffer.close()
const all = async (list) => { const items = []; for await (const item of list) items.push(item); return items }
show({
  listed: (await all(client.signals.list(PROMPT, { value: 'positive' }))).length,
  exported: (await all(client.signals.export(PROMPT))).length,
  history: (await all(client.history.list(PROMPT))).map((entry) => entry.action),
  counted: (await client.stats(PROMPT)).totals.total,
  verdicts: (await client.impact(PROMPT)).data.length,
  compared: (await client.compare(PROMPT, { base: 'c0ffee1', head: 'c0ffee2', share: 0.5 })).verdict,
  used: (await client.usage()).used,
  prompts: (await all(client.prompts.list())).length,
  prompt: (await client.prompts.get(PROMPT)).id === PROMPT,
})`,
  recordMany: (number: number, batchSize: number) => `
const { signals } = createClient({ url: URL, key: KEY, retries: 1 })
const buffer = createSignalBuffer({ signals, batchSize: ${batchSize}, intervalMs: 5 })
const recorded = Array.from({ length: ${number} }, (_, n) => buffer.record(PROMPT, 'positive', { metadata: { n } }))
await buffer.close()
show((await Promise.all(recorded)).map(({ id }) => id))`,
}

const inPython = {
  work: `
client.record(prompt, "positive", commit="c0ffee1")
client.record_many(prompt, [{"value": "negative"}, {"value": "maybe"}])
client.record(prompt, "positive")
show({
  "listed": len(list(client.signals(prompt, value="positive"))),
  "exported": len(list(client.export(prompt))),
  "history": [entry["action"] for entry in client.history(prompt)],
  "counted": client.stats(prompt)["totals"]["total"],
  "verdicts": len(client.impact(prompt)["data"]),
  "compared": client.compare(prompt, "c0ffee1", "c0ffee2", share=0.5)["verdict"],
  "used": client.usage()["used"],
  "prompts": len(list(client.prompts())),
  "prompt": client.prompt(prompt)["id"] == prompt,
})`,
  recordMany: (number: number, batchSize: number) => `
ids = []
for first in range(0, ${number}, ${batchSize}):
  signals = [{"value": "positive", "metadata": {"n": first + n}} for n in range(${batchSize})]
  ids += [result["id"] for result in client.record_many(prompt, signals)]
show(ids)`,
}

function* cycle(): Generator<Fault> {
  while (true)
    yield* [
      'none',
      'lost request',
      'lost answer',
      'sent twice',
      'cut answer',
      'late request',
      'delayed request',
    ] as const
}

const onRuntime =
  (...runtime: string[]) =>
  async (lines: string, url: string, { key, prompt }: Tenant): Promise<unknown> => {
    writeFileSync(join(project, 'program.mjs'), javascript + lines)
    const env = { URL: url, KEY: key, PROMPT: prompt, DENO_DIR: createFolder() }
    return JSON.parse(await run([...runtime, 'program.mjs'], project, env))
  }

const runPython = (lines: string, url: string, { key, prompt }: Tenant): Promise<unknown> =>
  python(`prompt = "${prompt}"${lines}`, { url, key })

describe.each([
  ['the package on Node', inJavascript, onRuntime('node')],
  ['the package on Bun', inJavascript, onRuntime('bun')],
  ['the package on Deno', inJavascript, onRuntime(deno, 'run', '--allow-all')],
  ['the Python file', inPython, runPython],
])('%s', (_, programs, runProgram) => {
  test('has operations that work', async () => {
    await service.addHistory(tenant.prompt, [entry({ created_at: '2020-01-01T00:00:00Z' })])
    expect(await runProgram(programs.work, service.url, tenant)).toEqual({
      listed: 2,
      exported: 3,
      history: ['deployed'],
      counted: 3,
      verdicts: 1,
      compared: 'undecided',
      used: 3,
      prompts: 1,
      prompt: true,
    })
  })

  test('records every signal once and in order over a network that fails', async () => {
    const [number, batches] = inFullRun([10_000, 20], [2_000, 8])
    const roomy = await service.createTenant(number)
    const network = await createNetwork(service.url, cycle())
    const ids = await runProgram(programs.recordMany(number, number / batches), network.url, roomy)
    await network.settled()
    const rows = await Array.fromAsync(createClient({ url: service.url, key: roomy.key }).signals.export(roomy.prompt))
    expect(rows.map(({ id }) => id)).toEqual(ids as number[])
    expect(rows.map(({ metadata }) => metadata?.n)).toEqual(Array.from({ length: number }, (_, n) => n))
    // Three of seven requests are answered.
    expect(network.requests.length).toBeGreaterThanOrEqual(batches * (7 / 3) - 7)
  })
})

const html = `<!doctype html><link rel="icon" href="data:,">
<script type="importmap">{ "imports": { "prompt-signals-client": "/node_modules/prompt-signals-client/dist/index.js" } }</script>
<script type="module">
  import { createClient } from 'prompt-signals-client'
  const given = Object.fromEntries(new URLSearchParams(location.search))
  const { signals } = createClient(given)
  const record = (value, from, subject) => signals.record(given.prompt, value, { metadata: { from }, subject })
  window.leave = () => addEventListener('pagehide', () => record('negative', 'pagehide'))
  window.vote = (value) => record(value, 'page', 'msg_1')
  window.withdraw = () => signals.withdraw(given.prompt, 'msg_1')
  window.work = () => new Promise((resolve) => {
    const worker = new Worker('/worker.mjs', { type: 'module' })
    worker.onmessage = ({ data }) => resolve(data)
    worker.postMessage(given)
  })
</script>`

const worker = `
import { createSignals } from '/node_modules/prompt-signals-client/dist/signals.js'
onmessage = async ({ data: { prompt, ...options } }) =>
  postMessage(await createSignals(options).record(prompt, 'positive', { metadata: { from: 'worker' } }))
`

test('the installed package works in Chromium: while the page is left, on it, and in a worker', async () => {
  writeFileSync(join(project, 'index.html'), html)
  writeFileSync(join(project, 'worker.mjs'), worker)
  const left = Promise.withResolvers<void>()
  const site = serveInTest(async (request) => {
    const { pathname, search } = new URL(request.url)
    if (!pathname.startsWith('/api/')) return new Response(Bun.file(join(project, pathname)))
    // A slow network: the signal itself can be sent only when its page is gone.
    if (request.method === 'OPTIONS') await left.promise
    return fetch(service.url + pathname + search, request)
  })
  const browser = await launchBrowser()
  try {
    const terms = { origins: [site], prompts: null, monthly_limit: null }
    const { key } = await service.createKey(tenant, ['signals:write'], terms)
    const page = await browser.newPage()
    const query = new URLSearchParams({ url: site.replace('127.0.0.1', 'localhost'), key, prompt: tenant.prompt })
    await page.goto(`${site}/index.html?${query}`)
    await page.evaluate('leave()')
    await page.goto('about:blank')
    left.resolve()
    const listed = async () => {
      const { body } = await service.get(`/prompts/${tenant.prompt}/signals`, tenant.key)
      return body.data.map(({ value, metadata }: { value: string; metadata: object }) => ({ value, ...metadata }))
    }
    const onLeaving = { value: 'negative', from: 'pagehide' }
    await eventually(listed, [onLeaving])

    await page.goto(`${site}/index.html?${query}`)
    const voted = await page.evaluate(`vote('positive')`)
    expect(await page.evaluate(`vote('negative')`)).toEqual({ ...(voted as object), value: 'negative', replaced: true })
    expect(await page.evaluate('withdraw()')).toBe(true)
    await page.evaluate(`vote('positive')`)
    expect(await page.evaluate('work()')).toMatchObject({ replayed: false })
    expect(await listed()).toEqual([
      { value: 'positive', from: 'worker' },
      { value: 'positive', from: 'page' },
      onLeaving,
    ])
  } finally {
    await browser.close()
  }
})

test.each(['README.md', 'docs/clients.md', 'clients/typescript/README.md'])(
  'the first lines of %s record a signal',
  async (path) => {
    const lines = await readBlock(path, 'js')
    const given = lines.replace(/'https?:[^']*'/, `'${service.url}'`).replace('psk_…', tenant.key)
    writeFileSync(join(project, 'lines.mjs'), given.replace('pmt_…', tenant.prompt))
    await run(['node', 'lines.mjs'])
    const { body } = await service.get(`/prompts/${tenant.prompt}/signals`, tenant.key)
    expect(body.data).toMatchObject([
      { value: 'positive', metadata: { commit_sha: expect.stringMatching(/^45c48cc/) } },
    ])
  },
)

test('the types of the package check with only the standard libraries', async () => {
  const source = `
    import { createClient, type HistoryEntry } from 'prompt-signals-client'
    const client = createClient({ url: '', key: '' })
    export const names: Promise<string> = client.signals.record('pmt_1', 'positive').then((signal) => signal.created_at)
    export const entries: AsyncGenerator<HistoryEntry> = client.history.list('pmt_1', { branch: 'main' })
    // @ts-expect-error: not a value
    client.signals.record('pmt_1', 'maybe')`
  mkdirSync(join(project, 'types'))
  writeFileSync(join(project, 'types/program.ts'), source)
  const node = ['--module', 'nodenext', '--moduleResolution', 'nodenext']
  const options = ['--strict', '--noEmit', '--target', 'es2023', '--lib', 'es2023,dom', ...node]
  const command = ['bun', 'check', '--no-script', ...options, 'types/program.ts']
  const { exitCode, stdout } = Bun.spawnSync(command, { cwd: project })
  expect([stdout.toString(), exitCode]).toEqual(['', 0])
})

test.each([0.1, 0.5, 0.9])('%d of the sessions get the head, evenly, and keep it when the share grows', (share) => {
  const sessions = Array.from({ length: 100_000 }, (_, n) => `session-${n}`)
  const experiment = { base: 'a'.repeat(40), head: 'b'.repeat(40), share }
  const heads = sessions.filter((session) => assign(session, experiment) === experiment.head)
  const expected = sessions.length * share
  // One degree of freedom: by chance it is larger once in a thousand.
  expect((heads.length - expected) ** 2 / expected / (1 - share)).toBeLessThan(10.83)
  const larger = { ...experiment, share: share + 0.05 }
  expect(heads.filter((session) => assign(session, larger) !== experiment.head)).toEqual([])
})
