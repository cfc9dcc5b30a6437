import { type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import type { DocumentDecoration } from 'elysia'
import type { OpenAPIV3 } from 'openapi-types'
import { toOpenApi } from './openapi.ts'
import { type DescribedError, type ErrorStatus, errorOfStatus, rateExample } from './schema.ts'

/** JSON of a schema, or texts of other content types, each with an example. */
type Body = { schema: TSchema } | { texts: Record<string, string> }

type Operation = {
  summary: string
  description: string
  /** The parameters of the path, if it has any. */
  path?: TObject
  query?: TObject
  headers?: TObject
  body?: TSchema
  success: Body & { status: number; description: string; headers?: HeaderName[]; sometimes?: HeaderName[] }
  /** The errors that do not follow from the rest. Every operation has 401, 403 and 500; a path adds 404, a query or a body 422. */
  errors?: ErrorStatus[]
  /** What its 422 says, unless it is about a signal. */
  invalid?: Partial<DescribedError>
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
const commonHeaders = {
  'X-Request-Id': Type.String({
    pattern: headersOfAnswers['X-Request-Id'].schema.pattern,
    description: "Names the request in the service's log, and comes back with the answer. One is made if none is sent.",
  }),
}

const idempotencyHeaders = {
  'Idempotency-Key': Type.String({
    minLength: 1,
    maxLength: 255,
    description:
      'Makes a retry safe: within 24 hours, the same request with the same key changes nothing again. It is answered as ' +
      'the first one was, without what may be shown only once.',
  }),
}

/** What the document says of the operations of a feature, by their ids. */
export function describeOperations<Id extends string>(tag: string, operations: Record<Id, Operation>) {
  const describe = ([id, operation]: [string, Operation]) => [id, describeOperation({ id, tag, ...operation })]
  return Object.fromEntries(Object.entries<Operation>(operations).map(describe)) as Record<Id, DocumentDecoration>
}

/**
 * What the document says of an operation. Written out, because the routes declare no schemas to
 * Elysia: it would read and check the body before the key.
 */
export function describeOperation(operation: Operation & { id: string; tag: string }): DocumentDecoration {
  const { id, tag, summary, description, path, query, headers, body, success, errors = [], invalid } = operation
  const isLimitedByMonth = errors.includes(429)
  const statuses: ErrorStatus[] = [401, 403, 500, ...errors]
  if (path) statuses.push(404)
  if (query || body) statuses.push(422)
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
        ...parameters('path', path?.properties),
        ...parameters('query', query?.properties),
        ...parameters('header', {
          ...headers?.properties,
          ...(operation.isIdempotent && idempotencyHeaders),
          ...commonHeaders,
        }),
      ]
    },
    get responses() {
      return {
        [success.status]: {
          description: success.description,
          headers: describeHeaders(success.headers, [
            ...(isLimitedByMonth ? [] : headersOfEveryRate),
            ...(success.sometimes ?? []),
          ]),
          content: 'schema' in success ? json(success.schema) : describeTexts(success.texts),
        },
        ...(operation.unchanged && {
          304: { description: 'What the caller has is still current.', headers: describeHeaders(['ETag']) },
        }),
        ...Object.fromEntries(statuses.map((status) => [status, describeError(status, status === 422 ? invalid : {})])),
        429: describeError(429, isLimitedByMonth ? {} : rateExample),
      }
    },
  } as DocumentDecoration
}

function describeError(status: ErrorStatus, own?: Partial<DescribedError>): OpenAPIV3.ResponseObject {
  const { meaning, schema, headers } = errorOfStatus(status, own)
  const names = Object.keys(headers) as HeaderName[]
  return { description: meaning, headers: describeHeaders(names, [], headers), content: json(schema) }
}

const describeTexts = (texts: Record<string, string>): Record<string, OpenAPIV3.MediaTypeObject> =>
  Object.fromEntries(Object.entries(texts).map(([type, example]) => [type, { schema: { type: 'string' }, example }]))

/** Describes the headers of an answer; an example given replaces that of the table. */
const describeHeaders = (
  always: HeaderName[] = [],
  sometimes: HeaderName[] = [],
  examples: Record<string, unknown> = {},
) =>
  Object.fromEntries([
    ...['X-Request-Id' as const, ...always].map((name) => [
      name,
      { ...headersOfAnswers[name], example: examples[name] ?? headersOfAnswers[name].example, required: true },
    ]),
    ...sometimes.map((name) => [name, headersOfAnswers[name]]),
  ])

function json(typed: TSchema): Record<string, OpenAPIV3.MediaTypeObject> {
  const { example, ...schema } = toOpenApi(typed)
  return { 'application/json': { schema, example } }
}

/** Only a required one has an example: the page pre-fills its form with it, and would send every optional one. */
const parameters = (place: 'path' | 'query' | 'header', properties: TProperties = {}): OpenAPIV3.ParameterObject[] =>
  Object.entries(properties).map(([name, property]) => {
    const { description = '', example, ...schema } = toOpenApi(property)
    const required = place === 'path'
    return { name, in: place, required, description, schema, ...(required ? { example } : {}) }
  })
