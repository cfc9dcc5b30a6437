import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import type { DocumentDecoration } from 'elysia'
import type { OpenAPIV3 } from 'openapi-types'
import { type ErrorCode, statusOfCode } from '../errors.ts'
import { type DescribedError, described, rateExample } from './describe_errors.ts'
import { type HeaderName, rateHeaders, requestHeaders, responseHeaders } from './describe_headers.ts'
import type { ErrorStatus, Operation } from './operation.ts'

/** The routes declare no schemas to Elysia, which would read and validate the body before the key. */
export function describeOperation(operation: Operation<never>): DocumentDecoration {
  const { id, tag, summary, description, params, query, body, answer, errors = [] } = operation
  const invalid =
    operation.invalid ??
    body?.invalid ??
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
  if (params) statuses.push(404)
  if (query || body) statuses.push(422)
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: [{ bearer: [] }],
    // Built with the first request for the document, to keep the start short.
    get requestBody() {
      return body && { required: true, content: json(body.schema) }
    },
    get parameters() {
      return [
        ...parameters('path', params?.properties),
        ...parameters('query', query?.schema.properties),
        ...parameters('header', Object.fromEntries(sentHeaders.map((name) => [name, requestHeaders[name]]))),
      ]
    },
    get responses() {
      const success = {
        headers: describeHeaders(answer.headers, [
          ...(isLimitedByMonth ? [] : rateHeaders),
          ...(answer.sometimes ?? []),
          ...(operation.isIdempotent ? ['Idempotent-Replayed' as const] : []),
        ]),
        content: 'schema' in answer ? json(answer.schema) : describeTexts(answer.texts),
      }
      const { status, description, alternative } = answer
      return {
        ...(alternative && { [alternative.status]: { description: alternative.description, ...success } }),
        [status]: { description, ...success },
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
