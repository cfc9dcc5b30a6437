import { Elysia } from 'elysia'
import { guidesBundle } from '../platform.ts'
import type { RouteWrapper } from './middleware.ts'
import { loadOnce, pageHeaders, serveBundle, unpackBundle } from './static_file.ts'

/** The guides of this version, made by scripts/guides.ts. They run no script. */
export function guideRoutes({ publicRoute }: RouteWrapper) {
  const read = loadOnce(async () =>
    unpackBundle(await guidesBundle(), { 'cache-control': 'no-cache', ...pageHeaders("'self'") }),
  )
  return new Elysia({ name: 'guides' })
    .get(
      '/guides',
      publicRoute(async (context) => context.reply(302, null, { location: 'guides/overview' })),
    )
    .get('/guides/:file', publicRoute(serveBundle(read)))
}
