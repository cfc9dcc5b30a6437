import { createHash } from 'node:crypto'
import { type AnyElysia, Elysia } from 'elysia'
import { build, docsFiles } from '../platform.ts'
import type { Answering } from './answer.ts'
import { docsPage, pagePolicy, startScript } from './docs_page.ts'
import { nameSchemas } from './openapi.ts'

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

/** The OpenAPI document of the routes given, and a page to read it on, which needs nothing but this service. */
export function docsRoutes(answer: Answering, documented: AnyElysia) {
  let written: Promise<string> | undefined
  return new Elysia({ name: 'docs' })
    .get(
      '/docs',
      answer.open(async (exchange) => {
        const { pathname } = new URL(exchange.request.url)
        return exchange.reply(200, docsPage(pathname.endsWith('/') ? '' : 'docs/'), {
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': pagePolicy,
          'cache-control': 'no-cache',
        })
      }),
    )
    .get(
      '/docs/json',
      answer.open(async (exchange) => {
        written ??= writeDocument(documented)
        return exchange.reply(200, await written)
      }),
    )
    .get(
      '/docs/start.js',
      serveFile(answer, 'text/javascript', async () => startScript),
    )
    .get('/docs/swagger-ui-bundle.js', serveFile(answer, 'text/javascript', docsFiles.script))
    .get('/docs/swagger-ui.css', serveFile(answer, 'text/css', docsFiles.style))
}

/** Asked of the plugin, whose own page would load its scripts from a host on the Internet. */
async function writeDocument(documented: AnyElysia): Promise<string> {
  // Loaded when somebody reads the document: a service that starts has no need of it.
  const { swagger } = await import('@elysiajs/swagger')
  const app = new Elysia().use(swagger({ specPath: '/json', documentation })).use(documented)
  return nameSchemas(await (await app.handle(new Request('http://localhost/json'))).text())
}

/** Asked for again at every visit, and sent again only when it has changed: after an upgrade nothing is stale. */
const serveFile = (answer: Answering, type: string, read: () => Promise<string>) =>
  answer.open(async (exchange) => {
    const content = await read()
    const etag = `"${createHash('sha256').update(content).digest('base64url')}"`
    const headers = { 'cache-control': 'no-cache', etag }
    if (exchange.request.headers.get('if-none-match') === etag) return exchange.reply(304, null, headers)
    return exchange.reply(200, content, { ...headers, 'content-type': `${type}; charset=utf-8` })
  })
