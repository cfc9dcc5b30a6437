import { randomUUID } from 'node:crypto'
import { type ApiError, notFound, ServiceError, statusOfCode } from '../errors.ts'
import type { Caller } from '../keys/caller.ts'
import { DeadlineError, type Timed } from '../lib/deadline.ts'
import { parseIdempotencyKey } from '../lib/idempotency_key.ts'
import { matchesOrigin } from '../lib/origins.ts'
import type { Receiver } from '../platform.ts'
import { addRateLimitHeaders, type RateUsage } from './rate_limit.ts'

/** A little under the promised five seconds, so that the response itself arrives in time. */
const workMs = 4_500

export const requestIdPattern = '^[0-9A-Za-z._-]{1,128}$'
const wellFormedId = new RegExp(requestIdPattern)
/** W3C Trace Context. Version 00 ends after the flags. Further fields of later versions are ignored. */
const wellFormedTrace = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/

export class RequestContext implements Timed {
  /** The client's X-Request-Id, else the id of the client's trace, else a new one. */
  readonly requestId: string
  readonly traceId: string | undefined
  /** Public ids of the organisation and the API key; a signed event of GitHub has no key. */
  caller: { org: string; key?: string } | undefined
  cors: Record<string, string> | undefined
  /** Rejects when the key has ended or lost the right since. Undefined for a route without a key. */
  verifyAgain: (() => Promise<Caller>) | undefined
  rateUsage: RateUsage | undefined
  /** The request that this one is a part of: the client's address is read from it. */
  outer: RequestContext | undefined
  readonly beganAt = performance.now()
  deadline = this.beganAt + workMs
  settled = false
  deadlineError: () => Error = noAnswer
  isBodyRead = false
  onAnswered: (() => void) | undefined
  private leftMs = 0

  constructor(
    readonly request: Request,
    readonly route = '',
    readonly send: (response: Response) => void = ignore,
    readonly onTimeout: (this: RequestContext) => void = ignore,
    readonly receiver?: Receiver | null,
    /** The prefix of links; empty for relative ones. */
    readonly baseUrl = '',
  ) {
    const { headers } = request
    const given = headers.get('x-request-id')
    this.traceId = parseTraceId(headers.get('traceparent'))
    this.requestId = given !== null && wellFormedId.test(given) ? given : (this.traceId ?? randomUUID())
  }

  /** The query, from the question mark on. The URL is not parsed, because its host may be malformed. */
  get queryText(): string {
    const { url } = this.request
    const start = url.indexOf('?')
    return start < 0 ? '' : url.slice(start)
  }

  get searchParams(): URLSearchParams {
    return new URLSearchParams(this.queryText)
  }

  /** Null without the header. Throws `validation_error` for an invalid one. */
  get idempotencyKey(): string | null {
    return parseIdempotencyKey(this.request.headers.get('idempotency-key'))
  }

  /** Pauses the deadline for the work while the client sends the body, which has a separate deadline. */
  pauseDeadline(ms: number, deadlineError: () => Error): void {
    const now = performance.now()
    this.leftMs = this.deadline - now
    this.deadline = now + ms
    this.deadlineError = deadlineError
  }

  /** Resumes it. Throws if the request has timed out meanwhile. */
  resumeDeadline(): void {
    if (this.settled) throw this.deadlineError()
    this.deadline = performance.now() + this.leftMs
    this.deadlineError = noAnswer
  }

  reply(
    status: number,
    body: string | Uint8Array<ArrayBuffer> | ReadableStream | null,
    headers: Record<string, string> = {},
  ): Response {
    const all = { ...this.cors, ...(this.rateUsage ? addRateLimitHeaders(headers, this.rateUsage) : headers) }
    all['x-request-id'] = this.requestId
    if (body !== null) all['content-type'] ??= 'application/json'
    return new Response(body, { status, headers: all })
  }

  replyData(data: unknown, status = 200, headers?: Record<string, string>): Response {
    return this.reply(status, JSON.stringify({ data }), headers)
  }

  replyError({ code, message, context, headers }: ApiError): Response {
    const error = { code, message, ...context, request_id: this.requestId }
    return this.reply(statusOfCode[code], JSON.stringify({ error }), headers)
  }
}

const noAnswer = () => new DeadlineError()
const ignore = () => {}

function parseTraceId(traceparent: string | null): string | undefined {
  if (traceparent === null) return undefined
  const [, version, traceId, parentId, more] = wellFormedTrace.exec(traceparent) ?? []
  if (!traceId || version === 'ff' || (version === '00' && more)) return undefined
  return /^0+$/.test(traceId) || /^0+$/.test(parentId as string) ? undefined : traceId
}

/** A prompt that a browser key is not limited to is answered like one that does not exist. */
export function requireAllowedPrompt({ browser }: Caller, params: unknown): void {
  if (!browser?.prompts) return
  const { prompt_id: id } = params as { prompt_id?: string }
  if (id !== undefined && !browser.prompts.includes(id)) throw notFound()
}

const preflightHeaders = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'POST, DELETE',
  'access-control-allow-headers': 'authorization, content-type, idempotency-key, x-request-id',
  // Two hours, in seconds: browsers cache a preflight no longer.
  'access-control-max-age': '7200',
}

const exposed = 'ratelimit, ratelimit-policy, retry-after, idempotent-replayed, x-request-id'

/** A preflight carries no key. The response is the same for every origin and prompt, so it reveals nothing. */
export const answerPreflight = async (context: RequestContext): Promise<Response> =>
  context.reply(204, null, preflightHeaders)

/** The headers that let a page read the response. Throws `forbidden` if the key is not for the page's origin. */
export function corsHeaders(origin: string | null, allowed: string[]): Record<string, string> {
  // Only browsers send an origin that can be trusted; other programs send none, or any.
  if (origin === null) return {}
  if (!matchesOrigin(origin, allowed)) {
    throw new ServiceError(
      'forbidden',
      'This API key is not for pages of this origin. Add it to the origins of the key.',
    )
  }
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': exposed, vary: 'origin' }
}
