// The one file that knows Bun: serving, and the files inside the binary.
// Everything else is web-standard or `node:`, so another runtime needs only another one of these.

import consolePath from '../../generated/console.bundle' with { type: 'file' }
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
import impact from '../../sql/0006_impact.sql' with { type: 'text' }

/** Defined by the build; a run from source has no commit of its own. */
declare const BUILD_COMMIT: string | undefined

export const build = {
  version,
  commit: typeof BUILD_COMMIT === 'string' ? BUILD_COMMIT : 'source',
  bun: Bun.version,
}

/** Whether this is the binary, not a run from source. */
export const isCompiled = Bun.isStandaloneExecutable

/** How a person starts this very program, for messages that name a command to run: npx leaves no `bun` on the path. */
export const programName = isCompiled
  ? process.execPath
  : `${process.execPath.includes('/_npx/') ? `npx -y bun@${Bun.version}` : 'bun'} src/main.ts`

/** Every file of `sql/`, in order. */
export const migrations = [
  { name: '0001_organisations', text: organisations },
  { name: '0002_signals', text: signals },
  { name: '0003_history', text: history },
  { name: '0004_github', text: github },
  { name: '0005_signal_counts', text: signalCounts },
  { name: '0006_impact', text: impact },
]

/** The embedded engine's own files, read only when that engine is opened. */
export const engineFiles = {
  pgliteWasm: async () => WebAssembly.compile(await Bun.file(pgliteWasmPath).arrayBuffer()),
  fsBundle: () => Bun.file(fsBundlePath),
}

/** The thread of the embedded engine. In the binary it is an entry point of its own, known by its path from `src`. */
export const startEngineWorker = (): Worker =>
  new Worker(isCompiled ? './db/embedded_worker.ts' : new URL('../db/embedded_worker.ts', import.meta.url))

/** The script and the style of the documentation page. */
export const docsFiles = {
  script: () => Bun.file(docsScriptPath).text(),
  style: () => Bun.file(docsStylePath).text(),
}

/** The files of the console, as scripts/console.ts has packed them. */
export const consoleBundle = (): Promise<string> => Bun.file(consolePath).text()

/** Unpacks the prepared data directory, so that a first start needs no initdb. */
export async function unpackSeed(directory: string): Promise<void> {
  await new Bun.Archive(await Bun.file(seedPath).arrayBuffer()).extract(directory)
}

/** What has received a request, and so knows the address at the other end of the connection. */
export type Receiver = { requestIP(request: Request): { address: string } | null }

/** The receivers of requests that reach the routes through the framework, which does not pass them on. */
const receivers = new WeakMap<Request, Receiver>()

/** The address at the other end; undefined when the connection is closed. It takes the runtime half a microsecond. */
export const peerOf = (request: Request, receiver?: Receiver | null): string | undefined =>
  (receiver ?? receivers.get(request))?.requestIP(request)?.address

/** What is served: its routes as Elysia lists them, and its own way of finding the right one. */
export type App = {
  routes: { method: string; path: string; handler: unknown; hooks: object }[]
  fetch(request: Request): Response | Promise<Response>
}

/** A certificate with its chain, and its private key, as texts in PEM. */
export type Certificate = { cert: string; key: string }

export type Listener = {
  url: string
  /** Serves new connections with another certificate; the open ones go on with theirs. */
  replaceCertificate(certificate: Certificate): void
  /** Rejects new connections and waits for the requests under way. */
  stop(): Promise<void>
}

const idleSeconds = 30
/** Until then every idle connection has timed out, also one that had a request under way; Bun's timers tick in 4 s. */
const retireMs = (idleSeconds + 10) * 1_000

export function listen(
  app: App,
  onCrash: () => Response,
  host: string,
  port: number,
  certificate?: Certificate,
): Listener {
  const handlers = { routes: nativeRoutes(app), fetch: fallback(app), error: () => onCrash() }
  const serve = (port: number, tls?: Certificate) =>
    Bun.serve({
      ...handlers,
      hostname: host,
      port,
      ...(tls ? { tls } : {}),
      // Without a certificate a second process on the same port must fail, not silently take half of the requests.
      reusePort: tls !== undefined,
      development: false,
      idleTimeout: idleSeconds,
      // Larger bodies are rejected by the routes: Bun's own answer has no envelope.
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    })
  // With one, the port must be shared with the server that will replace this one, so it is claimed and tried alone first.
  const claim = certificate && port !== 0 ? claimPort(host, port) : undefined
  if (claim) serve(port).stop(true)
  let server = serve(port, certificate)
  const retiring = new Set<typeof server>()
  let isStopping = false

  /**
   * Bun cannot change the certificate of a server, so another one takes over the port. The old one asks each caller to
   * close the connection with the next answer, and ends when those that were idle have timed out.
   */
  function replaceCertificate(certificate: Certificate): void {
    if (isStopping) throw new Error('the service is stopping')
    const old = server
    server = serve(old.port as number, certificate)
    retiring.add(old)
    old.reload({
      ...handlers,
      routes: nativeRoutes(app, closeAfter),
      fetch: async (request, server) => closeAfter(await handlers.fetch(request, server)),
    })
    setTimeout(() => {
      retiring.delete(old)
      old.stop()
    }, retireMs).unref()
  }

  return {
    url: server.url.origin,
    replaceCertificate,
    async stop() {
      isStopping = true
      const stopping = [server, ...retiring].map((one) => one.stop())
      // Nothing listens any more, so another process may have the port while the last requests are answered.
      claim?.release()
      await Promise.all(stopping)
    },
  }
}

/**
 * Keeps other processes of this program from the port until it is released or this process ends: of two that start in the
 * same instant, each would find the port free and share it with the other. The claim is a socket in the abstract
 * namespace, which leaves no file behind; Linux alone has that.
 */
function claimPort(host: string, port: number): { release(): void } {
  if (process.platform !== 'linux') return { release() {} }
  try {
    const socket = { open: (peer: Bun.Socket) => void peer.end(), data() {} }
    const claim = Bun.listen({ unix: `\0prompt-signals ${host} ${port}`, socket })
    claim.unref()
    return { release: () => claim.stop(true) }
  } catch {
    // The words of Bun for a port that is taken: the name of the socket would tell nobody anything.
    throw new Error(`Failed to start server. Is port ${port} in use?`)
  }
}

function closeAfter(response: Response): Response {
  response.headers.set('connection', 'close')
  return response
}

/**
 * The framework's own router, for the few requests that Bun's does not match. It finds the path at a fixed distance, so it
 * is given a host of its own: Bun leaves one that is not valid out of the URL, and a short one confuses the framework. It
 * knows no HEAD, which is a GET whose body Bun does not send.
 */
const fallback = (app: App) => (request: Request, server: Receiver) => {
  const { url, method } = request
  const path = url.slice(url.startsWith('/') ? 0 : url.indexOf('/', url.indexOf('://') + 3))
  const routable = new Request(`http://localhost${path}`, request)
  const routed = method === 'HEAD' ? new Request(routable, { method: 'GET' }) : routable
  receivers.set(routed, { requestIP: () => server.requestIP(request) })
  return app.fetch(routed)
}

type NativeRoute = (request: Bun.BunRequest, server: Receiver) => Promise<Response>
type NativeRoutes = Record<string, Record<string, NativeRoute>>

/**
 * The routes for Bun's own router, which takes a tenth less time over a request. It gets the plain routes: those for
 * any method or path, and those with hooks of the framework, stay with the app, as does what it does not match.
 */
function nativeRoutes({ routes }: App, finish?: (response: Response) => Response): NativeRoutes {
  const native: NativeRoutes = {}
  for (const { method, path, handler, hooks } of routes) {
    if (method === 'ALL' || Object.keys(hooks).some((hook) => hook !== 'parse' && hook !== 'detail')) continue
    const handle = handler as (context: object) => Promise<Response>
    const plain: NativeRoute = (request, receiver) => handle({ request, params: request.params, route: path, receiver })
    const answer: NativeRoute = finish ? async (...received) => finish(await plain(...received)) : plain
    native[path] = { ...native[path], [method]: answer }
  }
  return native
}
