import { ServiceError } from '../errors.ts'
import { matchesOrigin } from '../lib/origins.ts'
import type { RequestContext } from './request_context.ts'

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
