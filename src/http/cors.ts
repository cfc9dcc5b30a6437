import { ServiceError } from '../errors.ts'
import { matchesOrigin } from '../lib/origins.ts'
import type { RequestContext } from './request_context.ts'

const preflightHeaders = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'POST',
  'access-control-allow-headers': 'authorization, content-type, idempotency-key, x-request-id',
  // Two hours, in seconds: browsers keep a preflight no longer than that.
  'access-control-max-age': '7200',
}

const exposed = 'ratelimit, ratelimit-policy, retry-after, idempotent-replayed, x-request-id'

/**
 * Answers a preflight, which carries no key. It is the same for every origin and every prompt, and so reveals nothing: the
 * request itself is checked against the origins of its key.
 */
export const answerPreflight = async (context: RequestContext): Promise<Response> =>
  context.reply(204, null, preflightHeaders)

/** The headers that let a page read the answer; `forbidden` for a page that the key is not for. */
export function corsHeaders(origin: string | null, allowed: string[]): Record<string, string> {
  // A program that is no browser sends none, and could send any.
  if (origin === null) return {}
  if (!matchesOrigin(origin, allowed)) {
    throw new ServiceError(
      'forbidden',
      'This API key is not for pages of this origin. Add it to the origins of the key.',
    )
  }
  return { 'access-control-allow-origin': origin, 'access-control-expose-headers': exposed, vary: 'origin' }
}
