import { hash } from 'node:crypto'
import { notFound } from '../errors.ts'
import type { RequestContext } from './request_context.ts'

type Bytes = Uint8Array<ArrayBuffer>
type Encodings = { identity: Bytes; gzip: Bytes; br?: Bytes }
type Headers = Record<string, string>
type Variant = { content: Bytes; etag: string; headers: Headers }

/** In order of preference. */
const encodings = ['br', 'gzip'] as const

/** Browsers revalidate the file at every visit, so that nothing is stale after an upgrade. */
export const serveFile = (type: string, read: () => Promise<string>, more: Headers = {}) =>
  serveEncodings(type, async () => compress(new TextEncoder().encode(await read())), {
    'cache-control': 'no-cache',
    ...more,
  })

/** Serves a file in the given encodings. `more` says how it is cached. */
function serveEncodings(type: string, read: () => Promise<Encodings>, more: Headers) {
  const headers = { 'content-type': type, vary: 'Accept-Encoding', 'x-content-type-options': 'nosniff', ...more }
  const loadVariants = loadOnce(async () => {
    const contents = Object.entries(await read())
    return new Map(contents.map(([encoding, content]) => [encoding, variantOf(encoding, content, headers)]))
  })

  return async (context: RequestContext): Promise<Response> => {
    const variants = await loadVariants()
    const asked = context.request.headers
    const accepted = asked.get('accept-encoding')
    const encoding = encodings.find((one) => variants.has(one) && accepts(accepted, one)) ?? 'identity'
    const { content, etag, headers } = variants.get(encoding) as Variant
    const isKnown = asked.get('if-none-match')?.includes(etag)
    return isKnown ? context.reply(304, null, headers) : context.reply(200, content, headers)
  }
}

type Packed = { type: string; gzip: string; br: string }

/** The files of a bundle by their names, and what else it says. `more` says how they are cached. */
export function unpackBundle<Page = unknown>(text: string, more: Headers) {
  const { files, ...page } = JSON.parse(text) as { files: Record<string, Packed> }
  const served = Object.entries(files).map(
    ([name, { type, gzip, br }]) => [name, serveEncodings(type, () => decode(gzip, br), more)] as const,
  )
  return { page: page as Page, files: new Map(served) }
}

/** Serves the files of a bundle, which is read with the first request, to keep the start short. */
export const serveBundle =
  (read: () => Promise<{ files: ReadonlyMap<string, (context: RequestContext) => Promise<Response>> }>) =>
  async (context: RequestContext, { file }: { file: string }): Promise<Response> => {
    const serve = (await read()).files.get(file)
    if (!serve) throw notFound()
    return serve(context)
  }

async function decode(gzip: string, br: string): Promise<Encodings> {
  const compressed = Uint8Array.from(Buffer.from(gzip, 'base64'))
  const plain = new Blob([compressed]).stream().pipeThrough(new DecompressionStream('gzip'))
  const identity = new Uint8Array(await new Response(plain).arrayBuffer())
  return { identity, gzip: compressed, br: Uint8Array.from(Buffer.from(br, 'base64')) }
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

async function compress(identity: Bytes): Promise<Encodings> {
  const compressed = new Blob([identity]).stream().pipeThrough(new CompressionStream('gzip'))
  return { identity, gzip: new Uint8Array(await new Response(compressed).arrayBuffer()) }
}

function variantOf(encoding: string, content: Bytes, headers: Headers): Variant {
  const etag = `"${hash('sha256', content, 'base64url')}"`
  const coding: Headers = encoding === 'identity' ? {} : { 'content-encoding': encoding }
  return { content, etag, headers: { ...headers, ...coding, etag } }
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

/** How deep below the root a page is, for its relative URLs. They are not parsed, because the host may be malformed. */
export const depthOf = ({ request }: RequestContext): number =>
  (/^\w+:\/\/[^/]*(\/[^?]*)/.exec(request.url)?.[1] ?? '/').split('/').length - 2

/** The security headers of a page. `styles` and `more` belong to its content security policy. */
export const pageHeaders = (styles: string, ...more: string[]): Headers => ({
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    `style-src ${styles}`,
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    ...more,
  ].join('; '),
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
})
