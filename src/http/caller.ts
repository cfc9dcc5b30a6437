import { forbidden, notFound, ServiceError } from '../errors.ts'
import { matchesOrigin } from '../lib/origins.ts'
import type { Scope } from '../lib/scopes.ts'
import type { RequestContext } from './request_context.ts'

export type Caller = {
  id: number
  organisationId: number
  /** Public ids. */
  org: string
  key: string
  scopes: Scope[]
  /** Null for a key that does not expire. */
  expiresAt: Date | null
  browser: {
    origins: string[]
    prompts: string[] | null
    monthlyLimit: number | null
    /** The key itself, or the first key of the rotations that led to it. */
    countedWith: number
  } | null
}

/** Throws or rejects with `unauthorized`. A promise for a cached key would cost throughput, so there is none. */
export type KeyVerifier = (authorization: string | null) => Caller | Promise<Caller>

/** A handler goes on with the key as it was when the request began, so the key must still have every right of then. */
export function requireNotNarrowed(before: Caller, now: Caller): void {
  const lost = before.scopes.find((scope) => !now.scopes.includes(scope))
  if (lost) throw forbidden(lost)
  if (now.browser && !before.browser) {
    throw new ServiceError('forbidden', 'This API key was restricted meanwhile. Send the request again.')
  }
}

/** A prompt that a browser key is not limited to is answered like one that does not exist. */
export function requireAllowedPrompt({ browser }: Caller, params: unknown): void {
  if (!browser?.prompts) return
  const { prompt_id: id } = params as { prompt_id?: string }
  if (id !== undefined && !browser.prompts.includes(id)) throw notFound()
}

/** What a caller sees of a row that it wrote: everything with the scope to read it, else only the named properties. */
export const visibleTo = ({ scopes }: Caller, scope: Scope, row: object, names: string[]): object =>
  scopes.includes(scope) ? row : Object.fromEntries(Object.entries(row).filter(([name]) => names.includes(name)))

const preflightHeaders = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'POST',
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
