// One HTTP request to an address that was checked. The modules of Node ignore proxies of the environment, follow no
// redirect, and connect to exactly what `lookup` returns, with the name of the URL in Host and in TLS.
import type { LookupAddress } from 'node:dns'
import { type IncomingMessage, request as requestPlain } from 'node:http'
import { request as requestEncrypted } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import type { HostList } from '../setting_types.ts'
import { isAllowedHost, isPublicAddress } from './reachable.ts'

export type Reply = {
  /** Null when nothing was answered; `text` then says why. */
  code: number | null
  /** The begin of the answer. */
  text: string
  retryAfter: string | undefined
}

type Outgoing = { url: string; headers: Record<string, string>; body: string }

/** Finds the addresses of a name. Must hold no thread: organisations choose the name servers, which may never answer. */
export type Resolve = (name: string) => Promise<LookupAddress[]>

type Options = { allowedHosts?: HostList | undefined; timeoutMs: number; stopped: AbortSignal; resolve: Resolve }

const maxTextLength = 1_000
/** A character has at most four bytes. */
const maxTextBytes = 4 * maxTextLength

/** The message may be shown: it names no address, which would tell an organisation about the operator's network. */
class UnreachableError extends Error {}

/** Rejects only when it is stopped. */
export async function post({ url: text, headers, body }: Outgoing, options: Options): Promise<Reply> {
  const { allowedHosts, timeoutMs, stopped, resolve } = options
  const timedOut = AbortSignal.timeout(timeoutMs)
  const signal = AbortSignal.any([timedOut, stopped])
  try {
    const url = new URL(text)
    const lookup = createLookup(url, allowedHosts, resolve)
    const send = url.protocol === 'https:' ? requestEncrypted : requestPlain
    const response = await new Promise<IncomingMessage>((answered, reject) => {
      send(url, { method: 'POST', headers, lookup, signal, agent: false }, answered)
        .on('error', reject)
        .on('upgrade', (_, socket) => reject(socket.destroy()))
        .end(body)
      // Ends in time whatever the receiver and the name server do.
      signal.onabort = reject
    })
    const code = response.statusCode as number
    return { code, text: await readText(response), retryAfter: response.headers['retry-after'] }
  } catch (error) {
    stopped.throwIfAborted()
    const why = timedOut.aborted ? `No answer within ${timeoutMs / 1_000} s.` : describeFailure(error)
    return { code: null, text: why, retryAfter: undefined }
  }
}

/** Rejects a URL that may not be called at all. An address in the URL is never looked up. */
function createLookup(url: URL, allowedHosts: HostList | undefined, resolve: Resolve): LookupFunction {
  const { protocol, hostname, username, password } = url
  const isOpen = (address: string) => isAllowedHost(allowedHosts, hostname) || isAllowedHost(allowedHosts, address)
  const isReachable = (address: string) => isOpen(address) || (protocol === 'https:' && isPublicAddress(address))
  if (username || password) throw new UnreachableError('The URL has a user name or password.')
  const address = hostname.replace(/^\[|\]$/g, '')
  if (isIP(address) && !isReachable(address)) throw new UnreachableError(notAllowed)
  return (name, { all }, answer) =>
    resolve(name).then(
      (found) => {
        const [first, ...rest] = found.filter(({ address }) => isReachable(address))
        if (!first) answer(new UnreachableError(notAllowed), '')
        else if (all) answer(null, [first, ...rest])
        else answer(null, first.address, first.family)
      },
      (error) => answer(error, ''),
    )
}

const notAllowed = 'The address is not public, or not https. The operator can allow it (WEBHOOK_ALLOWED_HOSTS).'

/** The status is what counts, so a body that breaks off or never ends is cut. */
async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of response) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= maxTextBytes) break
    }
  } catch {
    // The connection was reset, or the time was up.
  } finally {
    response.destroy()
  }
  // Postgres stores no NUL.
  return Buffer.concat(chunks).toString('utf8').replaceAll('\0', '').slice(0, maxTextLength)
}

function describeFailure(error: unknown): string {
  if (error instanceof UnreachableError) return error.message
  const { code = 'connection closed' } = error as { code?: string }
  return `No answer: ${code}.`
}
