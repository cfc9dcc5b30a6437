import { createHash } from 'node:crypto'
import type { Exchange } from './exchange.ts'

type Bytes = Uint8Array<ArrayBuffer>
/** A file as it is, and as it is sent to those who take it compressed. */
type Encodings = { identity: Bytes; gzip: Bytes; br?: Bytes }
type Headers = Record<string, string>
type Variant = { content: Bytes; etag: string; headers: Headers }

/** What is preferred stands first. */
const encodings = ['br', 'gzip'] as const

/**
 * Serves a file that never changes while the process runs: it is read, hashed and compressed at its first use. Browsers
 * ask again at every visit and get it again only when it has changed, so that nothing is stale after an upgrade.
 */
export const serveFile = (
  type: string,
  read: () => Promise<string>,
  more: Headers = {},
): ((exchange: Exchange) => Promise<Response>) =>
  serveEncodings(type, async () => compress(new TextEncoder().encode(await read())), {
    'cache-control': 'no-cache',
    ...more,
  })

/** Serves a file that may have been compressed before, with the caching that the headers given say. */
export function serveEncodings(
  type: string,
  read: () => Promise<Encodings>,
  more: Headers,
): (exchange: Exchange) => Promise<Response> {
  const headers = { 'content-type': type, vary: 'Accept-Encoding', ...more }
  let variants: Promise<Map<string, Variant>> | undefined

  const load = async () =>
    new Map(
      Object.entries(await read()).map(([encoding, content]) => [
        encoding,
        variantOf(content, encoding === 'identity' ? headers : { ...headers, 'content-encoding': encoding }),
      ]),
    )

  return async (exchange) => {
    variants ??= load().catch((error) => {
      // A failure is not remembered: the next request reads the file again.
      variants = undefined
      throw error
    })
    const known = await variants
    const asked = exchange.request.headers
    const accepted = asked.get('accept-encoding')
    const encoding = encodings.find((one) => known.has(one) && accepts(accepted, one)) ?? 'identity'
    const { content, etag, headers } = known.get(encoding) as Variant
    const isKnown = asked.get('if-none-match')?.includes(etag)
    return isKnown ? exchange.reply(304, null, headers) : exchange.reply(200, content, headers)
  }
}

/** Whether the header names the encoding, and not with a weight of zero. */
export function accepts(header: string | null, encoding: string): boolean {
  const named = (header ?? '').split(',').map((one) =>
    one
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/),
  )
  return named.some(([name, weight]) => name === encoding && !/^q=0(\.0*)?$/.test(weight ?? ''))
}

async function compress(identity: Bytes): Promise<Encodings> {
  const compressed = new Blob([identity]).stream().pipeThrough(new CompressionStream('gzip'))
  return { identity, gzip: new Uint8Array(await new Response(compressed).arrayBuffer()) }
}

function variantOf(content: Bytes, headers: Headers): Variant {
  const etag = `"${createHash('sha256').update(content).digest('base64url')}"`
  return { content, etag, headers: { ...headers, etag } }
}
