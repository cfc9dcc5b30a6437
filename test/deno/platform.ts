// What src/platform.ts is for Bun, for Deno: all that the service needs of another runtime.
import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { App, Listener } from '../../src/platform.ts'

type Handler = (request: Request) => Response | Promise<Response>
type Options = { hostname: string; port: number; onListen(): void; onError(): Response }
declare const Deno: {
  version: { deno: string }
  serve(options: Options, handler: Handler): { addr: { port: number }; shutdown(): Promise<void> }
}

const root = join(import.meta.dirname, '../..')
const engine = join(root, 'node_modules/@electric-sql/pglite/dist')
const page = join(root, 'node_modules/swagger-ui-dist')

export const build = { version: 'test', commit: 'source', bun: `Deno ${Deno.version.deno}` }

export const programName = 'deno run src/main.ts'

export const migrations = readdirSync(join(root, 'sql'))
  .sort()
  .map((file) => ({ name: file.replace('.sql', ''), text: readFileSync(join(root, 'sql', file), 'utf8') }))

export const engineFiles = {
  pgliteWasm: async () => WebAssembly.compile(await readFile(join(engine, 'pglite.wasm'))),
  fsBundle: () => new Blob([readFileSync(join(engine, 'pglite.data'))]),
}

export const startEngineWorker = (): Worker =>
  new Worker(pathToFileURL(join(root, 'src/db/embedded_worker.ts')).href, { type: 'module' })

export const docsFiles = {
  script: () => readFile(join(page, 'swagger-ui-bundle.js'), 'utf8'),
  style: () => readFile(join(page, 'swagger-ui.css'), 'utf8'),
}

export function unpackSeed(): never {
  throw new Error('a test brings its data directory')
}

export function listen(app: App, onCrash: () => Response, hostname: string, port: number): Listener {
  const options = { hostname, port, onListen() {}, onError: onCrash }
  const { addr, shutdown } = Deno.serve(options, (request) => app.fetch(request))
  return { url: `http://${hostname}:${addr.port}`, stop: shutdown }
}
