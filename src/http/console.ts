import { Elysia } from 'elysia'
import { notFound } from '../errors.ts'
import { consoleBundle } from '../platform.ts'
import { consolePage, type PageFiles, pageHeaders } from './console_page.ts'
import { consolePaths } from './console_paths.ts'
import { loadOnce } from './load_once.ts'
import type { RouteWrapper } from './middleware.ts'
import type { RequestContext } from './request_context.ts'
import { serveEncodings, serveFile } from './static_file.ts'

type Serve = (context: RequestContext) => Promise<Response>
type Bundle = PageFiles & { files: Record<string, { type: string; gzip: string; br: string }> }

/** File names change with the content, so browsers may cache them forever. */
const immutable = { 'cache-control': 'public, max-age=31536000, immutable', 'x-content-type-options': 'nosniff' }

/** The console: the same page at each of its paths, and the files of that page. */
export function consoleRoutes({ publicRoute }: RouteWrapper) {
  // The bundle is read with the first request for it, to keep the start short.
  const read = loadOnce(async () => unpack(await consoleBundle()))

  const pageAt = (depth: number): Serve => {
    const write = async () => consolePage('../'.repeat(depth), (await read()).page)
    return serveFile('text/html; charset=utf-8', write, pageHeaders)
  }

  const routes = new Elysia({ name: 'console' }).get(
    '/console/:file',
    publicRoute(async (context, { file }: { file: string }) => {
      const serve = (await read()).files.get(file)
      if (!serve) throw notFound()
      return serve(context)
    }),
  )
  for (const path of consolePaths) {
    const depth = path.split('/').length - 2
    // The URLs in the page are relative, so they differ when its own path ends in a slash.
    const [page, pageWithSlash] = [pageAt(depth), pageAt(path === '/' ? depth : depth + 1)]
    // The URL is not parsed, because the host may be malformed.
    const endsInSlash = ({ request }: RequestContext) => /^[^?]*\/(\?|$)/.test(request.url)
    routes.get(
      path,
      publicRoute((context) => (endsInSlash(context) ? pageWithSlash(context) : page(context))),
    )
  }
  return routes
}

/** The route that replaces the console when it is turned off. */
export const consoleOffRoutes = ({ publicRoute }: RouteWrapper) =>
  new Elysia({ name: 'console' }).get(
    '/',
    publicRoute(async (context) => context.reply(302, null, { location: 'docs' })),
  )

/** Unpacks the bundle of scripts/console.ts. */
function unpack(text: string): { page: PageFiles; files: Map<string, Serve> } {
  const { files, ...page }: Bundle = JSON.parse(text)
  const served = Object.entries(files).map(([name, { type, gzip, br }]): [string, Serve] => [
    name,
    serveEncodings(type, () => decode(gzip, br), immutable),
  ])
  return { page, files: new Map(served) }
}

async function decode(gzip: string, br: string) {
  const compressed = Uint8Array.from(Buffer.from(gzip, 'base64'))
  const plain = new Blob([compressed]).stream().pipeThrough(new DecompressionStream('gzip'))
  const identity = new Uint8Array(await new Response(plain).arrayBuffer())
  return { identity, gzip: compressed, br: Uint8Array.from(Buffer.from(br, 'base64')) }
}
