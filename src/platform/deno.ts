// The only file that knows Deno. The import map in `deno.json` puts it in the place of `bun.ts`.
import { lookup } from 'node:dns/promises'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import manifest from '../../package.json' with { type: 'json' }
import type { Address, App, Certificate, Listener, Receiver } from './bun.ts'

type Connection = { remoteAddr: { hostname: string } }
type Handler = (request: Request, connection: Connection) => Response | Promise<Response>
type Options = { hostname: string; port: number; reusePort: boolean; onListen(): void; onError(): Response }
declare const Deno: {
  version: { deno: string }
  serve(
    options: Options & Partial<Certificate>,
    handler: Handler,
  ): { addr: { port: number }; shutdown(): Promise<void> }
}

const root = join(import.meta.dirname, '../..')
const engine = join(root, 'node_modules/@electric-sql/pglite/dist')
const page = join(root, 'node_modules/swagger-ui-dist')

export const build = { version: manifest.version, commit: 'source', runtime: `Deno ${Deno.version.deno}` }

export const isCompiled = false

export const programName = 'npx deno run -A src/main.ts'

export const migrations = readdirSync(join(root, 'sql'))
  .sort()
  .map((file) => ({ name: file.replace('.sql', ''), text: readFileSync(join(root, 'sql', file), 'utf8') }))

export const engineFiles = {
  pgliteWasm: async () => WebAssembly.compile(await readFile(join(engine, 'pglite.wasm'))),
  fsBundle: () => new Blob([readFileSync(join(engine, 'pglite.data'))]),
}

export const startEngineWorker = (): Worker =>
  new Worker(new URL('../db/embedded_worker.ts', import.meta.url), { type: 'module' })

export const docsFiles = {
  script: () => readFile(join(page, 'swagger-ui-bundle.js'), 'utf8'),
  style: () => readFile(join(page, 'swagger-ui.css'), 'utf8'),
}

export const consoleBundle = (): Promise<string> => readFile(join(root, 'generated/console.bundle'), 'utf8')

export const guidesBundle = (): Promise<string> => readFile(join(root, 'generated/guides.bundle'), 'utf8')

export const feedbackScript = (): Promise<string> => readFile(join(root, 'generated/feedback.bundle'), 'utf8')

/** Reads the tar archive, which has only plain files and directories, in blocks of 512 bytes. */
export async function unpackSeed(directory: string): Promise<void> {
  const archive = gunzipSync(await readFile(join(root, 'generated/seed.tar.gz')))
  for (let at = 0; archive[at]; ) {
    const name = archive.toString('utf8', at, archive.indexOf(0, at))
    const size = Number.parseInt(archive.toString('latin1', at + 124, at + 136), 8)
    const content = archive.subarray(at + 512, at + 512 + size)
    if (name.endsWith('/')) mkdirSync(join(directory, name), { recursive: true })
    else {
      mkdirSync(join(directory, name, '..'), { recursive: true })
      writeFileSync(join(directory, name), content)
    }
    at += 512 + Math.ceil(size / 512) * 512
  }
}

export const resolveName = (name: string) => lookup(name, { all: true })

const connections = new WeakMap<Request, Connection>()

export const peerOf = (request: Request, _?: Receiver | null): string | undefined =>
  connections.get(request)?.remoteAddr.hostname

/** Deno closes no connection while a response is not complete. */
export const restartIdleTimeout = (_: Request, __?: Receiver | null): void => {}

export function listen(app: App, onCrash: () => Response, address: Address): Listener {
  const { host: hostname, port, reusePort = false, certificate } = address
  const options = { hostname, port, reusePort, ...certificate, onListen() {}, onError: onCrash }
  const { addr, shutdown } = Deno.serve(options, (request, connection) => {
    // The framework has no HEAD routes. Deno drops the body.
    const routed = request.method === 'HEAD' ? new Request(request.url, { headers: request.headers }) : request
    connections.set(routed, connection)
    return app.fetch(routed)
  })
  const host = hostname.includes(':') ? `[${hostname}]` : hostname
  return {
    url: `${certificate ? 'https' : 'http'}://${host}:${addr.port}`,
    stop: shutdown,
  }
}
