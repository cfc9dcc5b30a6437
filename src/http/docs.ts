import { type AnyElysia, Elysia } from 'elysia'
import { build, docsFiles } from '../platform.ts'
import type { RouteWrapper } from './middleware.ts'
import { depthOf, loadOnce, pageHeaders, serveFile } from './static_file.ts'

const documentation = {
  info: {
    title: 'prompt-signals',
    description:
      'Reads the edit history of prompts, and records feedback signals on what they produce. ' +
      'Every request carries an API key, which gives access only to the prompts of its organisation.',
    version: build.version,
    contact: { name: 'the prompt-signals authors' },
    license: { name: 'MIT', url: 'https://opensource.org/license/mit' },
  },
  // Relative to /docs/json: the root of the service, at whatever path a proxy mounts it.
  servers: [{ url: '..' }],
  tags: [
    { name: 'History', description: 'Who changed a prompt, when, and how the change was deployed' },
    { name: 'Signals', description: "Feedback on a prompt's output, counted against a monthly limit" },
    { name: 'Impact', description: 'What each change of a prompt did to its signals' },
    { name: 'Usage', description: 'How much of the monthly limit is used' },
    { name: 'Keys', description: 'API keys, their scopes and their expiry' },
    { name: 'Prompts', description: 'The prompts of the organisation, and the files that hold them' },
    { name: 'Webhooks', description: 'History from GitHub, and events sent to endpoints' },
    { name: 'Audit', description: 'Who changed keys, plans, prompts and webhooks' },
  ],
  components: {
    securitySchemes: {
      bearer: { type: 'http' as const, scheme: 'bearer', description: 'An API key, which begins with psk_' },
    },
  },
}

/**
 * The OpenAPI document of these routes, and a page that shows it. Both are made with the first request, by a plugin whose
 * page loads Swagger UI from elsewhere: here it comes from the service.
 */
export function docsRoutes({ publicRoute }: RouteWrapper, documented: AnyElysia, hasConsole: boolean) {
  const load = loadOnce(async () => {
    const { swagger } = await import('@elysiajs/swagger')
    const plugin = swagger({ provider: 'swagger-ui', path: '/docs', theme, autoDarkMode: false, documentation })
    const app = new Elysia({ aot: false }).use(documented).use(plugin)
    const read = async (path: string) => (await app.handle(new Request(`http://localhost${path}`))).text()
    return { page: await read('/docs'), document: await read('/docs/json') }
  })
  const page = (folder: string, root: string) =>
    serveFile(
      'text/html; charset=utf-8',
      async () => withOwnFiles((await load()).page, folder, root, hasConsole),
      // Swagger UI uses inline styles, and writes HTML that it has sanitised.
      pageHeaders("'self' 'unsafe-inline'"),
    )
  const [pageInFolder, pageBesideFolder] = [page('', '../'), page('docs/', './')]
  return new Elysia({ name: 'docs' })
    .get(
      '/docs',
      publicRoute((context) => (depthOf(context) > 0 ? pageInFolder : pageBesideFolder)(context)),
    )
    .get('/docs/json', publicRoute(serveFile('application/json', async () => nameSchemas((await load()).document))))
    .get('/docs/start.js', publicRoute(serveFile('text/javascript; charset=utf-8', async () => startScript)))
    .get('/docs/swagger-ui-bundle.js', publicRoute(serveFile('text/javascript; charset=utf-8', docsFiles.script)))
    .get(`/docs/${theme}`, publicRoute(serveFile('text/css; charset=utf-8', docsFiles.style)))
}

/** Objects with a title move to `components.schemas`, so that a generated client has one type of that name. */
function nameSchemas(text: string): string {
  const schemas: Record<string, object> = {}
  const document = JSON.parse(text, (_, value) => {
    // Where it may also be null, it is another type.
    if (value?.type !== 'object' || typeof value.title !== 'string' || value.nullable) return value
    schemas[value.title] = value
    return { $ref: `#/components/schemas/${value.title}` }
  })
  document.components.schemas = schemas
  return JSON.stringify(document)
}

const theme = 'swagger-ui.css'

const style = `
      body { margin: 0 }
      nav { max-width: 1460px; margin: 0 auto; padding: 16px 20px 0; font: 15px system-ui, sans-serif }
      nav a { color: #1f62a5 }
      .swagger-ui .info { margin: 32px 0 16px }
      .swagger-ui .scheme-container { padding: 16px 0 }
      /* This is the only server, and no response has OpenAPI links. */
      .swagger-ui .scheme-container .schemes .schemes-server-container, .swagger-ui .response-col_links { display: none }`

/** The plugin's page with files of the service instead of its scripts. URLs are relative: a proxy may add a path. */
const withOwnFiles = (page: string, folder: string, root: string, hasConsole: boolean): string =>
  page
    .replace('<html lang="en">', '<html lang="en-GB">')
    .replace('</title>', ' API</title>')
    .replace(`href="${theme}"`, `href="${folder}${theme}"`)
    .replace('</head>', `<link rel="icon" href="data:,"><style>${style}</style></head>`)
    .replace(
      '<body>',
      `<body><nav>${hasConsole ? `<a href="${root}">Console</a> ` : ''}<a href="${root}guides/overview">Guides</a></nav>`,
    )
    .replace(
      /<script[\s\S]*<\/script>/,
      `<noscript>This page needs JavaScript. The OpenAPI document is at <a href="${folder}json">${folder}json</a>.</noscript>
    <script src="${folder}swagger-ui-bundle.js"></script>
    <script src="${folder}start.js"></script>`,
    )

/** A separate file, because the policy of the page allows no inline script. */
const startScript = `SwaggerUIBundle({
  url: new URL('json', document.currentScript.src).href,
  dom_id: '#swagger-ui',
  deepLinking: true,
  displayRequestDuration: true,
  // Expands schemas, with their bounds.
  defaultModelExpandDepth: 5,
  showCommonExtensions: true,
})
`
