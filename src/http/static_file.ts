import { hash } from 'node:crypto'
import type { RequestContext } from './request_context.ts'

type Bytes = Uint8Array<ArrayBuffer>
type Headers = Record<string, string>

/** Serves a text, plain or gzipped. Browsers revalidate it at every visit, unless `more` says how it is cached. */
export function serveFile(type: string, read: () => Promise<string>, more: Headers = {}) {
  const headers = { 'content-type': type, vary: 'Accept-Encoding', 'x-content-type-options': 'nosniff' }
  const shared = { ...headers, 'cache-control': 'no-cache', ...more }
  const load = loadOnce(async () => {
    const content = new TextEncoder().encode(await read())
    return {
      plain: variantOf(content, shared),
      gzipped: variantOf(await compress(content), { ...shared, 'content-encoding': 'gzip' }),
    }
  })

  return async (context: RequestContext): Promise<Response> => {
    const { plain, gzipped } = await load()
    const asked = context.request.headers
    const { content, etag, headers } = accepts(asked.get('accept-encoding'), 'gzip') ? gzipped : plain
    const isKnown = asked.get('if-none-match')?.includes(etag)
    return isKnown ? context.reply(304, null, headers) : context.reply(200, content, headers)
  }
}

/** Whether the header names the encoding, and not with a weight of zero. */
export const accepts = (header: string | null, encoding: string): boolean =>
  (header ?? '').split(',').some((one) => {
    const [name, weight = ''] = one
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/)
    return name === encoding && !/^q=0(\.0*)?$/.test(weight)
  })

async function compress(content: Bytes): Promise<Bytes> {
  const compressed = new Blob([content]).stream().pipeThrough(new CompressionStream('gzip'))
  return new Uint8Array(await new Response(compressed).arrayBuffer())
}

function variantOf(content: Bytes, headers: Headers) {
  const etag = `"${hash('sha256', content, 'base64url')}"`
  return { content, etag, headers: { ...headers, etag } }
}

/** Loads a value on the first call. After a failure, the next call loads again. */
export function loadOnce<T>(load: () => Promise<T>): () => Promise<T> {
  let loading: Promise<T> | undefined
  return () => {
    loading ??= load().catch((error) => {
      loading = undefined
      throw error
    })
    return loading
  }
}

/** Relative URLs in a page depend on it. The URL is not parsed, because the host may be malformed. */
export const endsInSlash = ({ request }: RequestContext): boolean => /^[^?]*\/(\?|$)/.test(request.url)

/** The security headers of a page. `styles` and `more` belong to its content security policy. */
export const pageHeaders = (styles: string, ...more: string[]): Headers => ({
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${styles}`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    ...more,
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
})
