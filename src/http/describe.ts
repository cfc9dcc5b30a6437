import { type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import type { DocumentDecoration } from 'elysia'
import type { OpenAPIV3 } from 'openapi-types'
import { type ErrorCode, statusOfCode } from '../errors.ts'
import type { Params } from '../lib/params.ts'
import { type DescribedError, described, rateExample } from './describe_errors.ts'
import { idempotencyKeyType, requestIdPattern } from './request_context.ts'

type ErrorStatus = (typeof statusOfCode)[ErrorCode]

/** JSON of a schema, or other content types, each with an example. */
type Body = { schema: TSchema } | { texts: Record<string, string> }

type Operation = {
  summary: string
  description: string
  path?: TObject
  query?: Pick<Params<unknown>, 'schema' | 'problem'>
  body?: TSchema
  success: Body & { status: number; description: string; headers?: HeaderName[]; sometimes?: HeaderName[] }
  /** Errors that do not follow from the rest. Every operation has 401, 403, 429, 500 and 503; a path adds 404, a query or a body 422. */
  errors?: ErrorStatus[]
  /** What its 422 says, unless it is about a signal or follows from the query. */
  invalid?: Partial<DescribedError>
  isIdempotent?: boolean
  /** Whether it answers 304 to a client that has the current version. */
  unchanged?: boolean
}

/** The month's limit, a request rate, or both in this order. */
const limitPattern = (says: string) => `^("signals";${says}(, "burst";${says})?|"burst";${says})$`

const responseHeaders = {
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

type HeaderName = keyof typeof responseHeaders

/** Sent with every response if the operator has set a request rate. */
const rateHeaders: HeaderName[] = ['RateLimit', 'RateLimit-Policy']

const requestHeaders = {
  'X-Request-Id': Type.String({
    pattern: requestIdPattern,
    description: "Names the request in the service's log, and is returned with the response. Generated if absent.",
  }),
  'Idempotency-Key': idempotencyKeyType(
    'Makes a retry safe for 24 hours: it gets the same response, without values shown only once. Bare or quoted.',
  ),
  'If-None-Match': Type.String({
    description: 'The ETag of an earlier response. If it is still current, the response is a 304 without a body.',
  }),
}

export function describeOperations<Id extends string>(tag: string, operations: Record<Id, Operation>) {
  const describe = ([id, operation]: [string, Operation]) => [id, describeOperation(id, tag, operation)]
  return Object.fromEntries(Object.entries<Operation>(operations).map(describe)) as Record<Id, DocumentDecoration>
}

/** The routes declare no schemas to Elysia, which would read and validate the body before the key. */
function describeOperation(id: string, tag: string, operation: Operation): DocumentDecoration {
  const { summary, description, path, query, body, success, errors = [] } = operation
  const invalid =
    operation.invalid ??
    (query && {
      meaning: 'A query parameter is not valid.',
      message: 'The query is not valid.',
      example: { details: [query.problem] },
    })
  const sentHeaders: (keyof typeof requestHeaders)[] = ['X-Request-Id']
  if (operation.unchanged) sentHeaders.unshift('If-None-Match')
  if (operation.isIdempotent) sentHeaders.unshift('Idempotency-Key')
  const isLimitedByMonth = errors.includes(429)
  const statuses: ErrorStatus[] = [401, 403, 500, 503, ...errors]
  if (path) statuses.push(404)
  if (query || body) statuses.push(422)
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: [{ bearer: [] }],
    // Built with the first request for the document, to keep the start short.
    get requestBody() {
      return body && { required: true, content: json(body) }
    },
    get parameters() {
      return [
        ...parameters('path', path?.properties),
        ...parameters('query', query?.schema.properties),
        ...parameters('header', Object.fromEntries(sentHeaders.map((name) => [name, requestHeaders[name]]))),
      ]
    },
    get responses() {
      return {
        [success.status]: {
          description: success.description,
          headers: describeHeaders(success.headers, [
            ...(isLimitedByMonth ? [] : rateHeaders),
            ...(success.sometimes ?? []),
            ...(operation.isIdempotent ? ['Idempotent-Replayed' as const] : []),
          ]),
          content: 'schema' in success ? json(success.schema) : describeTexts(success.texts),
        },
        ...(operation.unchanged && {
          304: { description: 'The version in If-None-Match is current.', headers: describeHeaders(['ETag']) },
        }),
        ...Object.fromEntries(statuses.map((status) => [status, describeError(status, status === 422 ? invalid : {})])),
        429: describeError(429, isLimitedByMonth ? {} : rateExample),
      }
    },
  } as DocumentDecoration
}

function describeError(status: ErrorStatus, own: Partial<DescribedError> = {}): OpenAPIV3.ResponseObject {
  const code = (Object.keys(statusOfCode) as ErrorCode[]).find((key) => statusOfCode[key] === status) as ErrorCode
  const { meaning, message, fields, example, headers } = { ...described[code], ...own }
  const error = Type.Object({
    code: Type.Literal(code, { description: 'Machine-readable error type' }),
    message: Type.String({ description: 'What went wrong and what to do about it, for a person' }),
    ...fields,
    request_id: Type.String({ description: 'The same as the X-Request-Id header' }),
  })
  const title = code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
  const shown = { code, message, ...example, request_id: 'f2a7f1a0-6d0b-4c6e-9a38-1f5d3c1b7e42' }
  const content = json(Type.Object({ error }, { title, examples: [{ error: shown }] }))
  return { description: meaning, headers: describeHeaders(headers), content }
}

const describeTexts = (texts: Record<string, string>): Record<string, OpenAPIV3.MediaTypeObject> =>
  Object.fromEntries(Object.entries(texts).map(([type, example]) => [type, { schema: { type: 'string' }, example }]))

const describeHeaders = (always: HeaderName[] = [], sometimes: HeaderName[] = []) =>
  Object.fromEntries([
    ...['X-Request-Id' as const, ...always].map((name) => [name, { ...responseHeaders[name], required: true }]),
    ...sometimes.map((name) => [name, responseHeaders[name]]),
  ])

function json(typed: TSchema): Record<string, OpenAPIV3.MediaTypeObject> {
  const { example, ...schema } = toOpenApi(typed)
  return { 'application/json': { schema, example } }
}

/** Only required ones have an example: the page pre-fills its form with examples, and would send the optional ones. */
const parameters = (place: 'path' | 'query' | 'header', properties: TProperties = {}): OpenAPIV3.ParameterObject[] =>
  Object.entries(properties).map(([name, property]) => {
    const { description = '', example, ...schema } = toOpenApi(property)
    const required = place === 'path'
    return { name, in: place, required, description, schema, ...(required ? { example } : {}) }
  })

/** Converts a TypeBox schema to OpenAPI 3.0, which has neither `const`, nor `type: null`, nor `examples`. */
function toOpenApi(schema: TSchema): OpenAPIV3.SchemaObject {
  const { anyOf, const: constant, examples, properties, items, ...rest } = schema
  const fields = Object.entries<TSchema>(properties ?? {}).map(([name, property]) => [name, toOpenApi(property)])
  return {
    ...(anyOf ? toChoice(anyOf) : {}),
    ...rest,
    ...(constant === undefined ? {} : { enum: [constant] }),
    ...(examples ? { example: examples[0] } : {}),
    ...(properties ? { properties: Object.fromEntries(fields) } : {}),
    ...(items ? { items: toOpenApi(items) } : {}),
  } as OpenAPIV3.SchemaObject
}

function toChoice(options: TSchema[]): OpenAPIV3.SchemaObject {
  const others = options.filter(({ type }) => type !== 'null')
  const nullable = others.length < options.length ? { nullable: true } : {}
  if (others.every((option) => option.const !== undefined)) {
    // OpenAPI 3.0 allows null in an enum only if it is listed.
    return { type: 'string', enum: options.map((option) => option.const ?? null), ...nullable }
  }
  const [only, ...more] = others.map(toOpenApi)
  // A second alternative would need `anyOf`, and no schema here has one.
  if (!only || more.length > 0) throw new Error('Only a choice of strings, or one type or null, can be described')
  return { ...only, ...nullable } as OpenAPIV3.SchemaObject
}
