// Checks responses against the OpenAPI document that the service itself serves.
import { Ajv, type Options, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import type { OpenAPIV3 } from 'openapi-types'

export interface Contract {
  /** Throws when the document does not describe the response. */
  check(method: string, url: string, status: number, headers: Headers, body: string): void
}

/** What checks the headers of a response, and its body by content type. */
interface Promised {
  headers: ValidateFunction
  bodies: Map<string, ValidateFunction>
}

type Promises = Map<number, Promised>

/** For operators, readers and GitHub, not callers: these paths are not in the document. */
const UNDOCUMENTED =
  /^\/+(livez|readyz|metrics|docs(\/.*)?|console\/.*|guides(\/.*)?|prompts(\/.*)?|signals|usage|settings(\/.*)?|webhooks\/github\/[^/]+)?\/*$/
/** The undocumented paths whose errors are read by programs, and so have the shape of all others. */
const ENVELOPED = /^\/webhooks\//

const bodyAjv = createAjv({})
const headerAjv = createAjv({ coerceTypes: true })

/** The document with what it names put in the place of each name. */
export function withoutNames(document: OpenAPIV3.Document): OpenAPIV3.Document {
  const schemas: Record<string, unknown> = document.components?.schemas ?? {}
  const text = JSON.stringify(document)
  const put = (_: string, value: { $ref?: string } | null): unknown =>
    value?.$ref ? JSON.parse(JSON.stringify(schemas[value.$ref.split('/').at(-1) as string]), put) : value
  return JSON.parse(text, put)
}

export function createContract(document: unknown): Contract {
  const operations = Object.entries(withoutNames(document as OpenAPIV3.Document).paths).flatMap(
    ([template, methods = {}]) =>
      Object.entries(methods as Record<string, OpenAPIV3.OperationObject>).map(([method, { responses }]) => ({
        method: method.toUpperCase(),
        // A slash at the end makes no difference to the service.
        path: new RegExp(`^${template.replace(/\{[^}]+\}/g, '[^/]+')}/?$`),
        promises: compile(responses),
      })),
  )
  // An unknown route is rejected like an operation, but only with these statuses.
  const rejections: Promises = new Map(
    [401, 404, 500, 503].flatMap((status) => {
      const promised = operations.map(({ promises }) => promises.get(status)).find((one) => one !== undefined)
      return promised ? [[status, promised] as const] : []
    }),
  )

  return {
    check(method, url, status, headers, body) {
      const path = new URL(url, 'http://localhost').pathname
      if (UNDOCUMENTED.test(path) && status !== 404) {
        if (ENVELOPED.test(path) && status >= 400 && !isEnvelope(body, headers)) {
          throw new Error(`${method} ${path} answers ${status} outside the envelope: ${body.slice(0, 2_000)}`)
        }
        return
      }
      // Preflights are for browsers, which know them without a document.
      if (method === 'OPTIONS' && status === 204 && body === '') return
      // HEAD is answered as GET is, but for the body.
      const documented = method === 'HEAD' ? 'GET' : method
      const operation = operations.find((one) => one.method === documented && one.path.test(path))
      const problem = findProblem(
        operation?.promises ?? rejections,
        status,
        headers,
        method === 'HEAD' ? undefined : body,
      )
      if (problem)
        throw new Error(`${method} ${path} breaks the contract: ${problem}\n${status} ${body.slice(0, 2_000)}`)
    },
  }
}

function isEnvelope(body: string, headers: Headers): boolean {
  const { error, ...others } = JSON.parse(body)
  const texts = [error?.code, error?.message, error?.request_id]
  return (
    Object.keys(others).length === 0 &&
    texts.every((text) => typeof text === 'string') &&
    error.request_id === headers.get('x-request-id')
  )
}

function findProblem(promises: Promises, status: number, headers: Headers, body?: string): string | undefined {
  const promised = promises.get(status)
  if (!promised) return `status ${status} is not one of ${[...promises.keys()].join(', ')}`
  const type = (headers.get('content-type') ?? 'none').replace(/\s*;.*/, '').toLowerCase()
  if (promised.bodies.size === 0 && type === 'none' && !body) {
    return promised.headers(Object.fromEntries(headers)) ? undefined : `headers ${explain(promised.headers)}`
  }
  const validBody = promised.bodies.get(type)
  if (!validBody) return `content type ${type} is not one of ${[...promised.bodies.keys()].join(', ')}`
  if (!promised.headers(Object.fromEntries(headers))) return `headers ${explain(promised.headers)}`
  if (body === undefined) return undefined
  if (type !== 'application/json') return validBody(body) ? undefined : `body ${explain(validBody)}`
  try {
    return validBody(JSON.parse(body)) ? undefined : `body ${explain(validBody)}`
  } catch {
    return 'the body is not JSON'
  }
}

function explain({ errors }: ValidateFunction): string {
  return (errors ?? [])
    .map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`)
    .join('; ')
}

function compile(responses: OpenAPIV3.ResponsesObject): Promises {
  const entries = Object.entries(responses as Record<string, OpenAPIV3.ResponseObject>)
  return new Map(
    entries.map(([status, { headers = {}, content = {} }]) => {
      const bodies = Object.entries(content).map(
        ([type, { schema = {} }]) => [type, compileSchema(close(schema))] as const,
      )
      return [Number(status), { headers: compileHeaders(headers), bodies: new Map(bodies) }]
    }),
  )
}

export const compileSchema = (schema: object): ValidateFunction => bodyAjv.compile(schema)

function createAjv(options: Options): Ajv {
  // JSON has no infinity, but JSON.parse makes one of an integer of more than 308 digits.
  const ajv = new Ajv({ ...options, strict: true, strictNumbers: false, allErrors: true, keywords: ['example'] })
  return addFormats.default(ajv)
}

/** Headers are strings, so numbers are parsed first. */
function compileHeaders(headers: NonNullable<OpenAPIV3.ResponseObject['headers']>): ValidateFunction {
  const entries = Object.entries(headers as Record<string, OpenAPIV3.HeaderObject>).map(
    ([name, header]) => [name.toLowerCase(), header] as const,
  )
  const properties = Object.fromEntries(entries.map(([name, { schema }]) => [name, schema ?? {}]))
  const required = entries.filter(([, header]) => header.required).map(([name]) => name)
  return headerAjv.compile({ type: 'object', properties, required })
}

/** Clients must accept unknown fields, but the service must send only documented ones. */
function close<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(close) as T
  if (typeof schema !== 'object' || schema === null) return schema
  const closed = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, close(value)]))
  return { ...('properties' in schema ? { additionalProperties: false } : {}), ...closed } as T
}
