import { Type } from '@sinclair/typebox'
import type { OpenAPIV3 } from 'openapi-types'
import { idempotencyKeyType } from '../lib/idempotency_key.ts'
import { requestIdPattern } from './request_context.ts'

/** The month's limit, a request rate, or both in this order. */
const limitPattern = (says: string) => `^("signals";${says}(, "burst";${says})?|"burst";${says})$`

export const responseHeaders = {
  'X-Request-Id': {
    description: "Names this request in the service's log. A well-formed one that was sent is kept.",
    schema: { type: 'string', pattern: requestIdPattern },
    example: 'f2a7f1a0-6d0b-4c6e-9a38-1f5d3c1b7e42',
  },
  'WWW-Authenticate': {
    description: 'The scheme to authenticate with.',
    schema: { type: 'string', enum: ['Bearer'] },
    example: 'Bearer',
  },
  Link: {
    description: 'The first, previous, next and last page (RFC 8288), where they exist.',
    schema: { type: 'string' },
    example:
      '</api/v1/prompts/pmt_greeting/history?page=1&limit=25>; rel="first", </api/v1/prompts/pmt_greeting/history?page=1&limit=25>; rel="last"',
  },
  ETag: {
    description: 'The version of the response, for If-None-Match.',
    schema: { type: 'string', pattern: '^"[0-9a-f-]{36}(?:-title)?"$' },
    example: '"6f2b1c9e-0d5a-4c1b-9a7e-3f8d2e4b5c60"',
  },
  'RateLimit-Policy': {
    description:
      'The monthly signal limit of the organisation, or of the browser key if it has one (q), and the seconds of this month ' +
      '(w). As "burst", the request-rate limit, where one is set.',
    schema: { type: 'string', pattern: limitPattern('q=\\d+;w=\\d+') },
    example: '"signals";q=1000;w=2592000',
  },
  RateLimit: {
    description: 'The signals and requests left (r), and the seconds until the full number is available again (t).',
    schema: { type: 'string', pattern: limitPattern('r=\\d+;t=\\d+') },
    example: '"signals";r=999;t=1383900',
  },
  'Idempotent-Replayed': {
    description: 'Present when nothing new was recorded: the response is what was recorded before.',
    schema: { type: 'string', enum: ['true'] },
    example: 'true',
  },
  'Retry-After': {
    description: 'Seconds to wait before a retry.',
    schema: { type: 'integer', minimum: 0 },
    example: 1,
  },
} satisfies Record<string, OpenAPIV3.HeaderObject>

export type HeaderName = keyof typeof responseHeaders

/** Sent with every response if the operator has set a request rate. */
export const rateHeaders: HeaderName[] = ['RateLimit', 'RateLimit-Policy']

export const requestHeaders = {
  'X-Request-Id': Type.String({
    pattern: requestIdPattern,
    description: "Names the request in the service's log, and is returned with the response. Generated if absent.",
  }),
  'Idempotency-Key': idempotencyKeyType('Makes a retry safe for 24 hours: it gets the same response. Bare or quoted.'),
  'If-None-Match': Type.String({
    description: 'The ETag of an earlier response. If it is still current, the response is a 304 without a body.',
  }),
}
