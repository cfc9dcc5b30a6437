// Clients behind a TCP proxy that drops, delays and duplicates their requests, one after the other.
import { expect, test } from 'bun:test'
import { once } from 'node:events'
import { join } from 'node:path'
import { createClient } from '../../clients/typescript/src/index.ts'
import { inFullRun } from '../full.ts'
import { createFolder } from '../program.ts'
import { createProxy, type Relay } from '../proxy.ts'
import { useService } from '../use.ts'

const service = useService()
const root = join(import.meta.dir, '../..')
const folder = createFolder()
const [deno = ''] = new Bun.Glob('@deno/*/deno').scanSync({ cwd: join(root, 'node_modules'), absolute: true })
const [number, batches] = inFullRun([10_000, 20], [2_000, 8])
const batchSize = number / batches

const faults = ['none', 'lost request', 'lost answer', 'sent twice', 'cut answer', 'late', 'delayed'] as const

/** The length of a request of which this is the beginning, once its head is there. */
function lengthOf(request: Buffer): number {
  const head = request.indexOf('\r\n\r\n')
  const length = /content-length: *(\d+)/i.exec(request.toString('latin1', 0, head))
  return head < 0 ? Infinity : head + 4 + Number(length?.[1] ?? 0)
}

function createNetwork() {
  const copies: Promise<unknown>[] = []
  let late: Buffer[] = []
  let requests = 0
  const relay: Relay = (guest, host, dial) => {
    let fault: (typeof faults)[number] = 'none'
    let request = Buffer.alloc(0)
    const sendCopy = (request: Buffer) => {
      const socket = dial()
      socket.write(request)
      copies.push(once(socket, 'data').then(() => socket.destroy()))
    }
    guest.on('data', (chunk) => {
      request = Buffer.concat([request, chunk as Buffer])
      if (request.length < lengthOf(request)) return
      const whole = request
      request = Buffer.alloc(0)
      fault = faults[requests++ % faults.length] as typeof fault
      // Together with the client's next attempt.
      for (const one of late) sendCopy(one)
      late = fault === 'late' ? [whole] : []
      if (fault === 'lost request' || fault === 'late') guest.resetAndDestroy()
      else if (fault === 'delayed') setTimeout(() => host.write(whole), 100)
      else host.write(whole)
      if (fault === 'sent twice') sendCopy(whole)
    })
    host.on('data', (chunk) => {
      if (fault === 'lost answer') guest.resetAndDestroy()
      else if (fault === 'cut answer') guest.end((chunk as Buffer).subarray(0, chunk.length / 2))
      else guest.write(chunk)
    })
  }
  return { relay, requests: () => requests, settled: () => Promise.all(copies) }
}

const javascript = `
import { createClient, createSignalBuffer } from '${root}/clients/typescript/src/index.ts'
const { URL, KEY, PROMPT } = globalThis.process.env
const { signals } = createClient({ url: URL, key: KEY, retries: 1 })
const buffer = createSignalBuffer({ signals, batchSize: ${batchSize}, intervalMs: 5 })
const recorded = Array.from({ length: ${number} }, (_, n) => buffer.record(PROMPT, 'positive', { metadata: { n } }))
await buffer.close()
console.log(JSON.stringify((await Promise.all(recorded)).map(({ id }) => id)))
`

const python = `
import json
from os import environ
from prompt_signals import Client
client, ids = Client(environ["URL"], environ["KEY"]), []
for first in range(0, ${number}, ${batchSize}):
  signals = [{"value": "positive", "metadata": {"n": first + n}} for n in range(${batchSize})]
  ids += [result["id"] for result in client.record_many(environ["PROMPT"], signals)]
print(json.dumps(ids))
`

async function bundle(): Promise<string> {
  await Bun.write(join(folder, 'source.ts'), javascript)
  const { outputs } = await Bun.build({
    entrypoints: [join(folder, 'source.ts')],
    naming: 'program.mjs',
    outdir: folder,
  })
  return outputs[0]?.path ?? ''
}

test.each([
  ['the buffer on Node', async () => ['node', await bundle()]],
  ['the buffer on Bun', async () => ['bun', await bundle()]],
  ['the buffer on Deno', async () => [deno, 'run', '--allow-all', await bundle()]],
  ['the Python client', async () => ['python3', '-c', python]],
])('%s records every signal once and in order over a network that fails', async (_, command) => {
  const { key, prompt } = await service.createTenant(number)
  const network = createNetwork()
  const proxy = await createProxy(service.url, network.relay)
  const env = {
    ...{ URL: proxy.url, KEY: key, PROMPT: prompt },
    ...{ PYTHONPATH: join(root, 'clients/python'), PYTHONDONTWRITEBYTECODE: '1', DENO_DIR: folder },
  }
  const child = Bun.spawn(await command(), { env: { ...process.env, ...env }, stderr: 'inherit' })
  const ids = JSON.parse((await child.stdout.text()) || '[]')
  await network.settled()
  proxy.close()
  const rows = await Array.fromAsync(createClient({ url: service.url, key }).signals.export(prompt))
  expect(rows.map(({ id }) => id)).toEqual(ids)
  expect(rows.map(({ metadata }) => metadata?.n)).toEqual(Array.from({ length: number }, (_, n) => n))
  // Three of seven requests are answered.
  expect(network.requests()).toBeGreaterThanOrEqual(batches * (7 / 3) - 7)
})
