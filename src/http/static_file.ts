import { createHash } from 'node:crypto'
import type { Exchange } from './exchange.ts'
import { acceptsGzip } from './stream.ts'

type Variant = { content: Uint8Array<ArrayBuffer>; etag: string; headers: Record<string, string> }

/**
 * Serves a file that never changes while the process runs: it is read, hashed and compressed at its first use. Browsers
 * ask again at every visit and get it again only when it has changed, so that nothing is stale after an upgrade.
 */
export function serveFile(
  type: string,
  read: () => Promise<string>,
  more: Record<string, string> = {},
): (exchange: Exchange) => Promise<Response> {
  const headers = { 'content-type': type, 'cache-control': 'no-cache', vary: 'Accept-Encoding', ...more }
  let variants: Promise<{ plain: Variant; gzipped: Variant }> | undefined

  async function load(): Promise<{ plain: Variant; gzipped: Variant }> {
    const content = new TextEncoder().encode(await read())
    const compressed = new Blob([content]).stream().pipeThrough(new CompressionStream('gzip'))
    return {
      plain: variantOf(content, headers),
      gzipped: variantOf(new Uint8Array(await new Response(compressed).arrayBuffer()), {
        ...headers,
        'content-encoding': 'gzip',
      }),
    }
  }

  return async (exchange) => {
    variants ??= load().catch((error) => {
      // A failure is not remembered: the next request reads the file again.
      variants = undefined
      throw error
    })
    const { plain, gzipped } = await variants
    const asked = exchange.request.headers
    const { content, etag, headers } = acceptsGzip(exchange.request) ? gzipped : plain
    const isKnown = asked.get('if-none-match')?.includes(etag)
    return isKnown ? exchange.reply(304, null, headers) : exchange.reply(200, content, headers)
  }
}

function variantOf(content: Uint8Array<ArrayBuffer>, headers: Record<string, string>): Variant {
  const etag = `"${createHash('sha256').update(content).digest('base64url')}"`
  return { content, etag, headers: { ...headers, etag } }
}
