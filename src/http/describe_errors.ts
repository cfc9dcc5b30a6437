import { type TProperties, Type } from '@sinclair/typebox'
import { type ErrorCode, limits } from '../errors.ts'
import { literals } from '../lib/typebox.ts'

/** What the OpenAPI document says of an error. */
export type DescribedError = {
  meaning: string
  message: string
  fields?: TProperties
  example?: Record<string, unknown>
  /** Beside X-Request-Id. */
  headers?: ('WWW-Authenticate' | 'RateLimit' | 'RateLimit-Policy' | 'Retry-After')[]
}

export const described: Record<ErrorCode, DescribedError> = {
  unauthorized: {
    meaning: 'The API key is missing, malformed, unknown, revoked or expired.',
    message: 'Send a valid API key as "Authorization: Bearer psk_…".',
    headers: ['WWW-Authenticate'],
  },
  forbidden: {
    meaning: 'The API key lacks the scope for this operation, or is not for pages of this origin.',
    message: 'This API key lacks the scope signals:write. Use a key that has it.',
    fields: { scope: Type.Optional(Type.String({ description: 'The missing scope, if that is the reason' })) },
    example: { scope: 'signals:write' },
  },
  not_found: {
    meaning: 'What the request names does not exist in the organisation of the key.',
    message: 'Not found. Check the path, and that the prompt belongs to the organisation of this key.',
  },
  validation_error: {
    meaning: 'The request body is not valid. Nothing was recorded or counted.',
    message: 'The signal is not valid.',
    fields: {
      details: Type.Array(
        Type.Object({
          path: Type.String({
            description: 'JSON Pointer, or name of a header or parameter; empty for the whole body',
          }),
          message: Type.String({ description: 'What the value must be' }),
        }),
      ),
    },
    example: { details: [{ path: '/value', message: 'must be positive or negative' }] },
  },
  rate_limited: {
    meaning: 'A monthly signal limit is reached, or a request rate, if the operator has set one. Nothing was recorded.',
    message:
      'This organisation has used all 1,000 of its signals for this month. Wait until resets_at, or ask the operator for more: orgs set-plan ORG PLAN --monthly-limit N.',
    fields: {
      limited_by: literals(limits, { description: 'Signals per month, or a request rate, and whose' }),
      limit: Type.Integer({ description: 'The monthly signal limit, or the allowed number of requests' }),
      used: Type.Integer({ description: 'Signals recorded in the current month, or requests counted' }),
      resets_at: Type.String({ format: 'date-time', description: 'The next month, UTC, or a few seconds from now' }),
    },
    example: { limited_by: 'organisation_month', limit: 1000, used: 1000, resets_at: '2026-12-01T00:00:00.000Z' },
    headers: ['RateLimit', 'RateLimit-Policy', 'Retry-After'],
  },
  internal_error: {
    meaning: 'The service failed in a way that was not foreseen.',
    message: 'The service could not complete the request. Try again shortly.',
    headers: ['Retry-After'],
  },
  unavailable: {
    meaning: 'The service is overloaded, or its database does not answer. Try again after the seconds in Retry-After.',
    message: 'The service could not complete the request. Try again shortly.',
    headers: ['Retry-After'],
  },
}

/** A 429 of an operation that records no signals. */
export const rateExample = {
  meaning: 'The request rate of the key or the address is exceeded. Only if the operator has set one.',
  message: 'More than 600 requests in 60 s with this API key. Wait until resets_at.',
  example: { limited_by: 'key_rate', limit: 600, used: 600, resets_at: '2026-11-15T12:01:00.000Z' },
}
