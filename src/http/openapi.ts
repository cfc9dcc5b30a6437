import type { TSchema } from '@sinclair/typebox'
import type { OpenAPIV3 } from 'openapi-types'

type Schema = OpenAPIV3.SchemaObject

/** Converts a TypeBox schema to OpenAPI 3.0, which has neither `const`, nor `type: null`, nor `examples`. */
export function toOpenApi(schema: TSchema): Schema {
  const { anyOf, const: constant, examples, properties, items, ...rest } = schema
  const fields = Object.entries<TSchema>(properties ?? {}).map(([name, property]) => [name, toOpenApi(property)])
  return {
    ...(anyOf ? toChoice(anyOf) : {}),
    ...rest,
    ...(constant === undefined ? {} : { enum: [constant] }),
    ...(examples ? { example: examples[0] } : {}),
    ...(properties ? { properties: Object.fromEntries(fields) } : {}),
    ...(items ? { items: toOpenApi(items) } : {}),
  } as Schema
}

function toChoice(options: TSchema[]): Schema {
  const others = options.filter(({ type }) => type !== 'null')
  const nullable = others.length < options.length ? { nullable: true } : {}
  if (others.every((option) => option.const !== undefined)) {
    // OpenAPI 3.0 allows null in an enum only if it is listed.
    return { type: 'string', enum: options.map((option) => option.const ?? null), ...nullable }
  }
  const [only, ...more] = others.map(toOpenApi)
  // A second alternative would need `anyOf`, and no schema here has one.
  if (!only || more.length > 0) throw new Error('Only a choice of strings, or one type or null, can be described')
  return { ...only, ...nullable } as Schema
}

/** Moves objects with a title to `components.schemas`, so that a generated client has one type of that name. */
export function nameSchemas(text: string): string {
  const schemas: Record<string, Schema> = {}
  const document = JSON.parse(text, (_, value) => {
    if (value?.type !== 'object' || typeof value.title !== 'string') return value
    schemas[value.title] = value
    return { $ref: `#/components/schemas/${value.title}` }
  })
  document.components.schemas = schemas
  return JSON.stringify(document)
}
