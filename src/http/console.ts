import { Elysia } from 'elysia'
import { notFound } from '../errors.ts'
import { build, consoleBundle, feedbackScript } from '../platform.ts'
import { consolePaths } from './console_paths.ts'
import type { RouteWrapper } from './middleware.ts'
import type { RequestContext } from './request_context.ts'
import { depthOf, loadOnce, pageHeaders, serveBundle, serveFile, unpackBundle } from './static_file.ts'

type PageFiles = { script: string; style: string }

/** File names change with the content, so browsers may cache them forever. */
const immutable = { 'cache-control': 'public, max-age=31536000, immutable' }

/** Trusted Types: text never becomes a script. */
const headers = pageHeaders("'self'", "require-trusted-types-for 'script'")

const missingHeaders = {
  ...headers,
  'content-type': 'text/html; charset=utf-8',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
}

/** Deeper paths get no page, which would have as many `../`. */
const maxDepth = 20

export function consoleRoutes({ publicRoute }: RouteWrapper) {
  const read = loadOnce(async () => unpackBundle<PageFiles>(await consoleBundle(), immutable))

  const write = async (depth: number) => consolePage('../'.repeat(depth), (await read()).page)
  const pages = Array.from({ length: maxDepth }, (_, depth) =>
    serveFile('text/html; charset=utf-8', () => write(depth), headers),
  )

  const routes = new Elysia({ name: 'console' }).get('/console/:file', publicRoute(serveBundle(read)))
  const servePage = publicRoute(async (context) => {
    // A backslash is a slash in a URL, but not to the router: there may be any number of them.
    const page = pages[depthOf(context)]
    if (!page) throw notFound()
    return page(context)
  })
  for (const path of consolePaths) routes.get(path, servePage)
  return Object.assign(routes, {
    /** Shows that a page does not exist, with a way back; undefined for a client that wants no page. */
    async showMissing(context: RequestContext): Promise<Response | undefined> {
      const { request } = context
      const depth = depthOf(context)
      const wantsPage = request.method === 'GET' && request.headers.get('accept')?.includes('text/html')
      if (!wantsPage || depth > maxDepth) return undefined
      return context.reply(404, await write(depth), missingHeaders)
    },
  })
}

export const consoleOffRoutes = ({ publicRoute }: RouteWrapper) =>
  new Elysia({ name: 'console' }).get(
    '/',
    publicRoute(async (context) => context.reply(302, null, { location: 'docs' })),
  )

const feedbackHeaders = {
  // Any page may load it. What it may record is up to the browser key.
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
}

/** The button for web pages. Under the name of its version it never changes. */
export function feedbackRoutes({ publicRoute }: RouteWrapper) {
  const serve = (cached: Record<string, string>) =>
    publicRoute(serveFile('text/javascript; charset=utf-8', feedbackScript, { ...feedbackHeaders, ...cached }))
  return new Elysia({ name: 'feedback' })
    .get('/feedback.js', serve({ 'cache-control': 'public, max-age=3600' }))
    .get(`/feedback-${build.version}.js`, serve(immutable))
}

/** `root` is the relative path to the root of the service. */
const consolePage = (root: string, { script, style }: PageFiles) => `<!doctype html>
<html lang="en-GB">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>prompt-signals</title>
    <link rel="icon" href="${icon}">
    <link rel="stylesheet" href="${root}console/${style}">
    <script type="module" src="${root}console/${script}"></script>
  </head>
  <body>
    <div id="console"></div>
    <noscript>This page needs JavaScript. The API is documented at <a href="${root}docs">docs</a>.</noscript>
  </body>
</html>
`

const icon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#2b6cb0" d="M2 9h3V5H2zm5 0h3V2H7zm5 0h2V6h-2z"/><path fill="#c05621" d="M2 10h3v2H2zm5 0h3v4H7zm5 0h2v1h-2z"/></svg>',
)}`
