import { type TObject, type TSchema, Type } from '@sinclair/typebox'
import type { DocumentDecoration } from 'elysia'
import type { OpenAPIV3 } from 'openapi-types'
import { toOpenApi } from './openapi.ts'
import { type ErrorStatus, errorOfStatus, type InvalidExample, rateExample } from './schema.ts'

/** JSON of a schema, or texts of other content types, each with an example. */
type Body = { schema: TSchema } | { texts: Record<string, string> }

type Operation = {
  id: string
  tag: string
  summary: string
  description: string
  /** The parameters of the path, if it has any. */
  path?: TObject
  query?: TObject
  headers?: TObject
  body?: TSchema
  success: Body & { status: number; description: string; headers?: HeaderName[]; sometimes?: HeaderName[] }
  errors: ErrorStatus[]
  invalid?: InvalidExample
  /** Whether a retry with the same Idempotency-Key changes nothing twice. */
  isIdempotent?: boolean
  /** Whether it answers 304 to a caller who has the current version. */
  unchanged?: boolean
}

/** What a header says of the month, of a request rate, or of both in this order. */
const limitPattern = (says: string) => `^("signals";${says}(, "burst";${says})?|"burst";${says})$`

const headersOfAnswers = {
  'X-Request-Id': {
    description: "Names this request in the service's log. A well-formed one that was sent is kept.",
    schema: { type: 'string', pattern: '^[0-9A-Za-z._-]{1,128}$' },
    example: 'f2a7f1a0-6d0b-4c6e-9a38-1f5d3c1b7e42',
  },
  'WWW-Authenticate': {
    description: 'The scheme to authenticate with.',
    schema: { type: 'string', enum: ['Bearer'] },
    example: 'Bearer',
  },
  Link: {
    description: 'The first, previous, next and last page (RFC 8288), those that there are.',
    schema: { type: 'string' },
    example:
      '</api/v1/prompts/pmt_greeting/history?page=1&limit=25>; rel="first", </api/v1/prompts/pmt_greeting/history?page=1&limit=25>; rel="last"',
  },
  ETag: {
    description:
      'The version of the answer. Sent back as If-None-Match, it makes an unchanged answer a 304 without a body.',
    schema: { type: 'string', pattern: '^"[0-9a-f-]{36}"$' },
    example: '"6f2b1c9e-0d5a-4c1b-9a7e-3f8d2e4b5c60"',
  },
  'RateLimit-Policy': {
    description:
      "The organisation's monthly limit of signals (q) and the length of this month in seconds (w); for a browser key with " +
      'a limit of its own, that one. As "burst", the limit of requests in a short time, where there is one.',
    schema: { type: 'string', pattern: limitPattern('q=\\d+;w=\\d+') },
    example: '"signals";q=1000;w=2592000',
  },
  RateLimit: {
    description:
      'How many signals, and how many requests, are left (r) and the seconds until all of them are again (t).',
    schema: { type: 'string', pattern: limitPattern('r=\\d+;t=\\d+') },
    example: '"signals";r=999;t=1383900',
  },
  'Idempotent-Replayed': {
    description: 'There when nothing new was recorded: the answer is what was recorded before.',
    schema: { type: 'string', enum: ['true'] },
    example: 'true',
  },
  'Retry-After': {
    description: 'After how many seconds to try again.',
    schema: { type: 'integer', minimum: 0 },
    example: 1,
  },
} satisfies Record<string, OpenAPIV3.HeaderObject>

type HeaderName = keyof typeof headersOfAnswers

/** Sent with every answer where the operator has set a request rate. */
const headersOfEveryRate: HeaderName[] = ['RateLimit', 'RateLimit-Policy']

/** The schemas of request headers are for the documentation alone: none is validated by its schema. */
const CommonHeaders = Type.Object({
  'X-Request-Id': Type.String({
    pattern: headersOfAnswers['X-Request-Id'].schema.pattern,
    description: "Names the request in the service's log, and comes back with the answer. One is made if none is sent.",
  }),
})

const IdempotencyHeaders = Type.Object({
  'Idempotency-Key': Type.String({
    minLength: 1,
    maxLength: 255,
    description:
      'Makes a retry safe: within 24 hours, the same request with the same key changes nothing again. It is answered as ' +
      'the first one was, without what may be shown only once.',
  }),
})

/** The examples of a 429, where nothing is left of the month, or of the rate. */
const examplesOfMonth = { RateLimit: '"signals";r=0;t=1383900', 'Retry-After': 1383900 }
const examplesOfRate = { RateLimit: '"burst";r=0;t=60', 'RateLimit-Policy': '"burst";q=600;w=60', 'Retry-After': 1 }

const headersOfError: Record<ErrorStatus, HeaderName[]> = {
  401: ['WWW-Authenticate'],
  403: [],
  404: [],
  422: [],
  429: ['RateLimit', 'RateLimit-Policy', 'Retry-After'],
  500: ['Retry-After'],
}

/**
 * What the document says of an operation. Written out, because the routes declare no schemas to
 * Elysia: it would read and check the body before the key.
 */
export function describeOperation({ unchanged, isIdempotent, ...operation }: Operation): DocumentDecoration {
  const { id, tag, summary, description, path, query, headers, body, success, errors, invalid } = operation
  const isLimitedByMonth = errors.includes(429)
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: [{ bearer: [] }],
    // The rest is built with the first request for the document, to keep the start short.
    get requestBody() {
      return body && { required: true, content: json(body) }
    },
    get parameters() {
      return [
        ...(path ? parameters('path', path) : []),
        ...(query ? parameters('query', query) : []),
        ...(headers ? parameters('header', headers) : []),
        ...(isIdempotent ? parameters('header', IdempotencyHeaders) : []),
        ...parameters('header', CommonHeaders),
      ]
    },
    get responses() {
      return {
        [success.status]: describeResponse(success.description, success, success.headers ?? [], [
          ...(isLimitedByMonth ? [] : headersOfEveryRate),
          ...(success.sometimes ?? []),
        ]),
        ...(unchanged ? { 304: describeUnchanged() } : {}),
        ...Object.fromEntries(errors.map((status) => [status, describeError(status, status === 422 ? invalid : {})])),
        429: isLimitedByMonth ? describeLimit(examplesOfMonth) : describeLimit(examplesOfRate, rateExample),
      }
    },
  } as DocumentDecoration
}

const describeUnchanged = (): OpenAPIV3.ResponseObject => ({
  description: 'What the caller has is still current.',
  headers: describeHeaders(['X-Request-Id', 'ETag']),
})

function describeError(status: ErrorStatus, own: Parameters<typeof errorOfStatus>[1]): OpenAPIV3.ResponseObject {
  const { meaning, schema } = errorOfStatus(status, own)
  return describeResponse(meaning, { schema }, headersOfError[status])
}

function describeLimit(examples: Record<string, unknown>, own?: typeof rateExample): OpenAPIV3.ResponseObject {
  const response = describeError(429, own)
  const headers = Object.entries((response.headers ?? {}) as Record<string, OpenAPIV3.HeaderObject>).map(
    ([name, header]) => [name, { ...header, example: examples[name] ?? header.example }],
  )
  return { ...response, headers: Object.fromEntries(headers) }
}

function describeResponse(
  description: string,
  body: Body,
  always: HeaderName[],
  sometimes: HeaderName[] = [],
): OpenAPIV3.ResponseObject {
  const content = 'schema' in body ? json(body.schema) : describeTexts(body.texts)
  return { description, headers: describeHeaders(['X-Request-Id', ...always], sometimes), content }
}

const describeTexts = (texts: Record<string, string>): Record<string, OpenAPIV3.MediaTypeObject> =>
  Object.fromEntries(Object.entries(texts).map(([type, example]) => [type, { schema: { type: 'string' }, example }]))

function describeHeaders(always: HeaderName[], sometimes: HeaderName[] = []): Record<string, OpenAPIV3.HeaderObject> {
  return Object.fromEntries([
    ...always.map((name) => [name, { ...headersOfAnswers[name], required: true }]),
    ...sometimes.map((name) => [name, headersOfAnswers[name]]),
  ])
}

function json(typed: TSchema): Record<string, OpenAPIV3.MediaTypeObject> {
  const { example, ...schema } = toOpenApi(typed)
  return { 'application/json': { schema, example } }
}

const parameters = (place: 'path' | 'query' | 'header', { properties }: TObject) =>
  Object.entries(properties).map(([name, property]) => parameter(place, name, property))

/** Only a required one has an example: the page pre-fills its form with it, and would send every optional one. */
function parameter(place: 'path' | 'query' | 'header', name: string, property: TSchema): OpenAPIV3.ParameterObject {
  const { description = '', example, ...schema } = toOpenApi(property)
  const required = place === 'path'
  return { name, in: place, required, description, schema, ...(required ? { example } : {}) }
}
