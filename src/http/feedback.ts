import { Elysia } from 'elysia'
import { build, feedbackScript } from '../platform.ts'
import type { RouteWrapper } from './middleware.ts'
import { serveFile } from './static_file.ts'

const headers = {
  // Any page may load it. What it may record is up to the browser key.
  'access-control-allow-origin': '*',
  'cross-origin-resource-policy': 'cross-origin',
  'x-content-type-options': 'nosniff',
}

/** The button for web pages. Under the name of its version it never changes. */
export function feedbackRoutes({ publicRoute }: RouteWrapper) {
  const serve = (cached: string) =>
    publicRoute(serveFile('text/javascript; charset=utf-8', feedbackScript, { ...headers, 'cache-control': cached }))
  return new Elysia({ name: 'feedback' })
    .get('/feedback.js', serve('public, max-age=3600'))
    .get(`/feedback-${build.version}.js`, serve('public, max-age=31536000, immutable'))
}
