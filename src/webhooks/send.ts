import { createHmac } from 'node:crypto'
import type { LookupAddress } from 'node:dns'
import type { IncomingMessage } from 'node:http'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import type { HostList } from '../lib/hosts.ts'
import { describeEvent, type WebhookEvent } from './message.ts'
import { isAllowedHost, isPublicAddress } from './reachable.ts'

/** Where to send to. Each of the secrets signs. */
export type Receiver = { kind: 'webhook' | 'slack'; url: string; secrets: string[] }

export type Reply = {
  /** Null when nothing was answered; `text` then says why. */
  code: number | null
  /** The begin of the answer. */
  text: string
  retryAfter: string | undefined
}

/** Makes one attempt, signed for the time `at`. Rejects only when it is stopped. */
export type SendOnce = (receiver: Receiver, event: WebhookEvent, at: Date, stopped?: AbortSignal) => Promise<Reply>

/** Finds the addresses of a name. Must hold no thread: organisations choose the name servers, which may never answer. */
type Resolve = (name: string) => Promise<LookupAddress[]>

type Reach = { allowedHosts?: HostList | undefined; resolve: Resolve }

const timeoutMs = 15_000
const neverStopped = new AbortController().signal

export const createSender =
  ({ version, publicUrl, ...reach }: Reach & { version: string; publicUrl: string }): SendOnce =>
  async ({ kind, url, secrets }, event, at, stopped = neverStopped) => {
    const { id, type, timestamp, data } = event
    const isSlack = kind === 'slack'
    const body = JSON.stringify(isSlack ? describeEvent(event, publicUrl) : { type, timestamp, data })
    const headers = {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'user-agent': `prompt-signals/${version}`,
      ...(isSlack ? {} : signBody(id, at, body, secrets)),
    }
    return post({ url, headers, body }, { ...reach, timeoutMs, stopped })
  }

/** The headers by Standard Webhooks 1.0.0, with a signature of each secret. The key of a secret is base64. */
function signBody(id: string, at: Date, body: string, secrets: string[]): Record<string, string> {
  const timestamp = Math.floor(at.getTime() / 1_000)
  const sign = (secret: string) =>
    createHmac('sha256', Buffer.from(secret.replace('whsec_', ''), 'base64'))
      .update(`${id}.${timestamp}.${body}`)
      .digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': secrets.map((secret) => `v1,${sign(secret)}`).join(' '),
  }
}

type Outgoing = { url: string; headers: Record<string, string>; body: string }

type PostOptions = Reach & { timeoutMs: number; stopped: AbortSignal }

const maxTextLength = 1_000
/** A character has at most four bytes. */
const maxTextBytes = 4 * maxTextLength
/** Of all that a receiver sends. Its parser bounds a head, but neither interim answers nor blank lines before it. */
const maxReadBytes = 65_536

/** The message may be shown: it names no address, which would tell an organisation about the operator's network. */
class UnreachableError extends Error {}

/**
 * One HTTP request to an address that was checked. The modules of Node ignore proxies of the environment, follow no
 * redirect, and connect to exactly what `lookup` returns, with the name of the URL in Host and in TLS. Rejects only when it
 * is stopped.
 */
export async function post({ url: text, headers, body }: Outgoing, options: PostOptions): Promise<Reply> {
  const { allowedHosts, timeoutMs, stopped, resolve } = options
  const timedOut = AbortSignal.timeout(timeoutMs)
  const signal = AbortSignal.any([timedOut, stopped])
  try {
    const url = new URL(text)
    const lookup = createLookup(url, allowedHosts, resolve)
    const { request } = await (url.protocol === 'https:' ? import('node:https') : import('node:http'))
    const response = await new Promise<IncomingMessage>((answered, reject) => {
      let isAnswered = false
      const call = request(url, { method: 'POST', headers, lookup, signal, agent: false }, (response) => {
        isAnswered = true
        answered(response)
      })
      call
        .on('error', reject)
        .on('upgrade', (_, socket) => reject(socket.destroy()))
        .on('socket', (socket) =>
          socket.on('data', () => {
            if (!isAnswered && hasSentTooMuch(socket)) call.destroy(new UnreachableError(tooMuch))
          }),
        )
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
  return async (name, { all }, answer) => {
    const found = await resolve(name).catch(() => [])
    const [first, ...rest] = found.filter(({ address }) => isReachable(address))
    if (!first) answer(new UnreachableError(notAllowed), '')
    else if (all) answer(null, [first, ...rest])
    else answer(null, first.address, first.family)
  }
}

/** The same for an unknown host: else an organisation could find out which names the operator's network has. */
const notAllowed =
  'The host is unknown, or its address is not public, or not https. The operator can allow it (WEBHOOK_ALLOWED_HOSTS).'

const tooMuch = `No answer within ${maxReadBytes} bytes.`

const hasSentTooMuch = ({ bytesRead }: Socket): boolean => bytesRead > maxReadBytes

/** The status is what counts, so a body that breaks off or never ends is cut. */
async function readText(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of response) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes >= maxTextBytes || hasSentTooMuch(response.socket)) break
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
