import type { TSchema } from '@sinclair/typebox'
import type { Operation, Tool as ToolWords } from '../http/operation.ts'

/** An operation as agents see it. The operation validates what it is given. */
export type Tool = {
  name: string
  description: string
  operation: Operation<never>
  inputSchema: { type: 'object'; properties: Record<string, object>; required: string[] }
}

/** Calls an operation as the caller of the message. */
export type CallTool = (tool: Tool, request: ReturnType<typeof requestOf>) => Promise<Response>

/** Fewer than by default: a model has to read them all. */
const pageSize = 10

export const toolsOf = (operations: Operation<never>[]): Tool[] =>
  operations.flatMap((operation) => (operation.tool ? [describeTool(operation, operation.tool)] : []))

function describeTool(operation: Operation<never>, words: ToolWords): Tool {
  const { params, query, body } = operation
  const { name, description, takes = [], more = {} } = words
  const taken = takes.map((one) => [one, query?.schema.properties[one]])
  const given = { ...params?.properties, ...body?.schema.properties, ...Object.fromEntries(taken) }
  const properties = Object.fromEntries(
    Object.entries<TSchema>(given).map(([one, schema]) => [one, toProperty(schema)]),
  )
  if (properties.limit) properties.limit = { type: 'integer', description: `At most 100. Default: ${pageSize}` }
  const required = [...(params?.required ?? []), ...(body?.schema.required ?? []), ...(words.required ?? [])]
  return {
    name,
    description,
    operation,
    inputSchema: { type: 'object', properties: { ...properties, ...more }, required },
  }
}

function toProperty({ type, anyOf, description }: TSchema): object {
  const choices = (anyOf as TSchema[] | undefined)?.map((choice) => choice.const)
  return { type: choices ? 'string' : type, ...(choices && { enum: choices }), ...(description && { description }) }
}

type Arguments = Record<string, unknown>

/** What the operation cannot tell, as it sees only the request. */
export function problemOf({ inputSchema: { required } }: Tool, given: Arguments): string | undefined {
  const missing = required.find((name) => (given[name] ?? null) === null)
  if (missing) return `${missing}: must be given.`
  const { metadata = null } = given
  // The fields of a text would be its characters.
  if (typeof metadata !== 'object' || Array.isArray(metadata)) return 'metadata: must be an object.'
}

const write = (value: unknown): string => (typeof value === 'string' ? value : String(JSON.stringify(value)))

/** The request of a call: the parameters of its path, its query, its body and its headers. */
export function requestOf({ operation, inputSchema: { properties } }: Tool, given: Arguments) {
  // Models send null for what they leave out. As a key, it would make all their signals one.
  const present: Arguments = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null))
  const { prompt_id, idempotency_key, metadata, ...rest } = present
  const params = prompt_id === undefined ? {} : { prompt_id: write(prompt_id) }
  if (operation.method === 'POST') {
    // A header cannot hold every character. The service rejects this one in a key, too.
    const key = write(idempotency_key).replace(/[^ -~]/g, 'ÿ')
    const headers: Record<string, string> = idempotency_key === undefined ? {} : { 'idempotency-key': key }
    return { params, query: '', headers, body: JSON.stringify({ ...rest, metadata }) }
  }
  const query = new URLSearchParams('limit' in properties ? { limit: String(pageSize) } : {})
  for (const [name, value] of Object.entries(rest)) if (name in properties) query.set(name, write(value))
  for (const [field, value] of Object.entries(metadata ?? {})) query.set(`metadata.${field}`, write(value))
  return { params, query: query.toString(), headers: {}, body: undefined }
}
