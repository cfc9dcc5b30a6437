// The only file that knows Bun. Everything else is web-standard or `node:`.

import consolePath from '../../generated/console.bundle' with { type: 'file' }
import feedbackPath from '../../generated/feedback.bundle' with { type: 'file' }
import guidesPath from '../../generated/guides.bundle' with { type: 'file' }
import seedPath from '../../generated/seed.tar.gz' with { type: 'file' }
import fsBundlePath from '../../node_modules/@electric-sql/pglite/dist/pglite.data' with { type: 'file' }
import pgliteWasmPath from '../../node_modules/@electric-sql/pglite/dist/pglite.wasm' with { type: 'file' }
import docsStylePath from '../../node_modules/swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import docsScriptPath from '../../node_modules/swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import { version } from '../../package.json'
import organisations from '../../sql/0001_organisations.sql' with { type: 'text' }
import signals from '../../sql/0002_signals.sql' with { type: 'text' }
import history from '../../sql/0003_history.sql' with { type: 'text' }
import github from '../../sql/0004_github.sql' with { type: 'text' }
import signalCounts from '../../sql/0005_signal_counts.sql' with { type: 'text' }
import webhooks from '../../sql/0006_webhooks.sql' with { type: 'text' }

/** Defined by the build; undefined in a run from source. */
declare const BUILD_COMMIT: string | undefined

export const build = {
  version,
  commit: typeof BUILD_COMMIT === 'string' ? BUILD_COMMIT : 'source',
  runtime: `Bun ${Bun.version}`,
}

export const isCompiled = Bun.isStandaloneExecutable

/** How the operator started this program, for messages that name a command to run. npx leaves no `bun` on the path. */
export const programName = isCompiled
  ? process.execPath
  : `${process.execPath.includes('/_npx/') ? `npx -y bun@${Bun.version}` : 'bun'} src/main.ts`

export const migrations = [
  { name: '0001_organisations', text: organisations },
  { name: '0002_signals', text: signals },
  { name: '0003_history', text: history },
  { name: '0004_github', text: github },
  { name: '0005_signal_counts', text: signalCounts },
  { name: '0006_webhooks', text: webhooks },
]

export const engineFiles = {
  pgliteWasm: async () => WebAssembly.compile(await Bun.file(pgliteWasmPath).arrayBuffer()),
  fsBundle: () => Bun.file(fsBundlePath),
}

/** The thread of the embedded engine. In the binary it is a separate entry point, known by its path from `src`. */
export const startEngineWorker = (): Worker =>
  new Worker(isCompiled ? './db/embedded_worker.ts' : new URL('../db/embedded_worker.ts', import.meta.url))

export const docsFiles = {
  script: () => Bun.file(docsScriptPath).text(),
  style: () => Bun.file(docsStylePath).text(),
}

export const consoleBundle = (): Promise<string> => Bun.file(consolePath).text()

export const guidesBundle = (): Promise<string> => Bun.file(guidesPath).text()

export const feedbackScript = (): Promise<string> => Bun.file(feedbackPath).text()

/** Unpacks the prepared data directory, so that a first start runs no initdb. */
export async function unpackSeed(directory: string): Promise<void> {
  await new Bun.Archive(await Bun.file(seedPath).arrayBuffer()).extract(directory)
}

/** getaddrinfo would hold one of the few threads until a name server answers, and file reads would wait too. */
export const resolveName = (name: string) => Bun.dns.lookup(name, { backend: 'c-ares' })

export type Receiver = {
  requestIP(request: Request): { address: string } | null
  timeout(request: Request, seconds: number): void
}

/** The receivers of requests that reach the routes through the framework, which does not pass them on. */
const receivers = new WeakMap<Request, Receiver>()

/** The address of the client; undefined when the connection is closed. */
export const peerOf = (request: Request, receiver?: Receiver | null): string | undefined =>
  (receiver ?? receivers.get(request))?.requestIP(request)?.address

/** A connection on which nothing is sent for this long is closed. */
const idleSeconds = 30

/** For a response that has nothing to send yet. Bun would close it like one that is complete. */
export const restartIdleTimeout = (request: Request, receiver?: Receiver | null): void =>
  (receiver ?? receivers.get(request))?.timeout(request, idleSeconds)

/** What is served: the routes as Elysia lists them, and a router for everything else. */
export type App = {
  routes: { method: string; path: string; handler: unknown }[]
  fetch(request: Request): Response | Promise<Response>
}

export type Certificate = { cert: string; key: string }

/** With `reusePort`, several processes listen on one port, and the kernel divides the connections (Linux). */
export type Address = { host: string; port: number; reusePort?: boolean; certificate?: Certificate | undefined }

export type Listener = {
  url: string
  stop(): Promise<void>
}

export function listen(app: App, onCrash: () => Response, address: Address): Listener {
  const { host, port, reusePort = false, certificate } = address
  const server = Bun.serve({
    routes: nativeRoutes(app),
    fetch: fallback(app),
    error: () => onCrash(),
    hostname: host,
    port,
    ...(certificate ? { tls: certificate } : {}),
    // Without it, a second process on the same port must fail, not silently take half of the requests.
    reusePort,
    development: false,
    idleTimeout: idleSeconds,
    // The routes reject larger bodies: Bun's own response has no envelope.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  })
  return { url: server.url.origin, stop: () => server.stop() }
}

/**
 * Serves the few requests that Bun's router does not match. The framework's router expects the path at a fixed offset, so
 * the URL gets a fixed host. It has no HEAD routes: they run as GET, and Bun drops the body.
 */
const fallback = (app: App) => (request: Request, server: Receiver) => {
  const { url, method } = request
  const path = url.slice(url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3))
  const routable = new Request(`http://localhost${path}`, request)
  const routed = method === 'HEAD' ? new Request(routable, { method: 'GET' }) : routable
  receivers.set(routed, {
    requestIP: () => server.requestIP(request),
    timeout: (_, seconds) => server.timeout(request, seconds),
  })
  return app.fetch(routed)
}

type NativeRoute = (request: Bun.BunRequest, server: Receiver) => Promise<Response>
type NativeRoutes = Record<string, Record<string, NativeRoute>>

/** Bun's router is faster than the framework's. */
function nativeRoutes({ routes }: App): NativeRoutes {
  const native: NativeRoutes = {}
  for (const { method, path, handler } of routes) {
    const handle = handler as (context: object) => Promise<Response>
    const route: NativeRoute = (request, receiver) => handle({ request, params: request.params, route: path, receiver })
    native[path] = { ...native[path], [method]: route }
  }
  return native
}
