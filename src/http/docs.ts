import { type AnyElysia, Elysia } from 'elysia'
import { build, docsFiles } from '../platform.ts'
import { docsPage, pagePolicy, startScript } from './docs_page.ts'
import type { RouteWrapper } from './middleware.ts'
import { nameSchemas } from './openapi.ts'
import { serveFile } from './static_file.ts'

const documentation = {
  info: {
    title: 'prompt-signals',
    version: build.version,
    description:
      'Reads the edit history of prompts, and records feedback signals on what they produce. ' +
      'Every request carries an API key, which gives access only to the prompts of its organisation.',
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
    { name: 'Webhooks', description: 'Records history from GitHub automatically' },
    { name: 'Audit', description: 'Who changed keys, plans, prompts and webhooks' },
  ],
  components: {
    securitySchemes: {
      bearer: { type: 'http' as const, scheme: 'bearer', description: 'An API key, which begins with psk_' },
    },
  },
}

/** The OpenAPI document of these routes, and a page that shows it and loads nothing from elsewhere. */
export function docsRoutes({ publicRoute }: RouteWrapper, documented: AnyElysia[], hasConsole: boolean) {
  const page = (folder: string, root: string) =>
    serveFile('text/html; charset=utf-8', async () => docsPage(folder, hasConsole ? root : null), {
      'content-security-policy': pagePolicy,
    })
  const [pageInFolder, pageBesideFolder] = [page('', '../'), page('docs/', './')]
  return new Elysia({ name: 'docs' })
    .get(
      '/docs',
      // The URLs in the page are relative, so they differ when its own path ends in a slash.
      publicRoute((context) => (/^[^?]*\/(\?|$)/.test(context.request.url) ? pageInFolder : pageBesideFolder)(context)),
    )
    .get('/docs/json', publicRoute(serveFile('application/json', () => writeDocument(documented))))
    .get('/docs/start.js', publicRoute(serveFile('text/javascript; charset=utf-8', async () => startScript)))
    .get('/docs/swagger-ui-bundle.js', publicRoute(serveFile('text/javascript; charset=utf-8', docsFiles.script)))
    .get('/docs/swagger-ui.css', publicRoute(serveFile('text/css; charset=utf-8', docsFiles.style)))
}

/** Uses only the document of the plugin: its page would load scripts from the Internet. */
async function writeDocument(documented: AnyElysia[]): Promise<string> {
  // Loaded with the first request for the document, to keep the start short.
  const { swagger } = await import('@elysiajs/swagger')
  const all = documented.reduce<AnyElysia>((joined, feature) => joined.use(feature), new Elysia())
  const app = new Elysia({ aot: false }).use(swagger({ specPath: '/json', documentation })).use(all)
  return nameSchemas(await (await app.handle(new Request('http://localhost/json'))).text())
}
