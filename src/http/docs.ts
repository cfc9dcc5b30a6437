import { createHash } from 'node:crypto'
import { swagger } from '@elysiajs/swagger'
import { Elysia } from 'elysia'
import { build, docsFiles } from '../platform.ts'
import { docsPage, pagePolicy, startScript } from './docs_page.ts'

const documentation = {
  info: {
    title: 'prompt-signals',
    version: build.version,
    description:
      'Reads the edit history of prompts, and records feedback signals on what they produce. ' +
      'Every request carries an API key, which sees the prompts of its own organisation and no others.',
  },
  // Seen from /docs/json: the root of the service, wherever that is mounted.
  servers: [{ url: '..' }],
  tags: [
    { name: 'History', description: 'Who changed a prompt, when, and how the change was deployed' },
    { name: 'Signals', description: "Feedback on a prompt's output, counted against a monthly limit" },
  ],
  components: {
    securitySchemes: {
      bearer: { type: 'http' as const, scheme: 'bearer', description: 'An API key, which begins with psk_' },
    },
  },
}

/** The OpenAPI document and a page to read it on, which needs nothing but this service. */
export const docs = () =>
  new Elysia({ name: 'docs', detail: { hide: true } })
    // A route for any method only refuses what no other route takes: it is no operation.
    .use(swagger({ path: '/docs', specPath: '/docs/json', documentation, excludeMethods: ['ALL'] }))
    // Takes the place of the plugin's own page, which loads its scripts from a host on the Internet.
    .get('/docs', ({ request }) => servePage(new URL(request.url).pathname))
    .get('/docs/start.js', ({ request }) => serveFile(request, startScript, 'text/javascript'))
    .get('/docs/swagger-ui-bundle.js', async ({ request }) =>
      serveFile(request, await docsFiles.script(), 'text/javascript'),
    )
    .get('/docs/swagger-ui.css', async ({ request }) => serveFile(request, await docsFiles.style(), 'text/css'))

const servePage = (path: string) =>
  new Response(docsPage(path.endsWith('/') ? '' : 'docs/'), {
    headers: {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': pagePolicy,
      'cache-control': 'no-cache',
    },
  })

/** Asked for again at every visit, and sent again only when it has changed: after an upgrade nothing is stale. */
function serveFile(request: Request, content: string | Uint8Array<ArrayBuffer>, type: string): Response {
  const etag = `"${createHash('sha256').update(content).digest('base64url')}"`
  const headers = { 'cache-control': 'no-cache', etag }
  if (request.headers.get('if-none-match') === etag) return new Response(null, { status: 304, headers })
  return new Response(content, { headers: { ...headers, 'content-type': `${type}; charset=utf-8` } })
}
