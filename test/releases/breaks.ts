// What an interface no longer promises to those who use an older one.
import { isDeepStrictEqual } from 'node:util'
import type { OpenAPIV3 } from 'openapi-types'
import type { Interface } from '../../scripts/interface.ts'
import { withoutNames } from '../contract.ts'

type Schema = OpenAPIV3.SchemaObject
type Operation = Omit<OpenAPIV3.OperationObject, 'parameters' | 'responses' | 'requestBody'> & {
  parameters?: OpenAPIV3.ParameterObject[]
  requestBody?: OpenAPIV3.RequestBodyObject
  responses: Record<string, OpenAPIV3.ResponseObject>
}
type Content = Record<string, OpenAPIV3.MediaTypeObject>

const keys = (value: object | undefined) => Object.keys(value ?? {})

export const findBreaks = (old: Interface, now: Interface): string[] => [
  ...findDocumentBreaks(old.document, now.document),
  ...findSettingBreaks(old.settings, now.settings),
  ...findCommandBreaks(old.commands, now.commands),
  ...keys(old.metrics)
    .filter((name) => old.metrics[name] !== now.metrics[name])
    .map((name) => `metric ${name} is ${now.metrics[name] ? `a ${now.metrics[name]}` : 'removed'}`),
]

function findDocumentBreaks(old: OpenAPIV3.Document, now: OpenAPIV3.Document): string[] {
  const [before, after] = [operationsOf(old), operationsOf(now)]
  const types = keys(old.components?.schemas).filter((name) => !now.components?.schemas?.[name])
  const schemesOf = ({ components }: OpenAPIV3.Document) => ({ properties: components?.securitySchemes }) as Schema
  return [
    ...types.map((name) => `schema ${name} removed`),
    ...compareSchemas(schemesOf(old), schemesOf(now), 'security scheme', ofResponses),
    ...keys(before).flatMap((name) => {
      const [was, is] = [before[name] as Operation, after[name]]
      return is ? compareOperations(was, is).map((text) => `${name}: ${text}`) : [`${name} removed`]
    }),
  ]
}

const known = new WeakMap<OpenAPIV3.Document, Record<string, Operation>>()

function operationsOf(document: OpenAPIV3.Document): Record<string, Operation> {
  const operations = known.get(document) ?? readOperations(document)
  known.set(document, operations)
  return operations
}

function readOperations(document: OpenAPIV3.Document): Record<string, Operation> {
  const entries = Object.entries(withoutNames(document).paths).flatMap(([path, methods]) =>
    Object.entries(methods as Record<string, Operation>).map(([method, one]) => [
      `${method.toUpperCase()} ${path}`,
      one,
    ]),
  )
  return Object.fromEntries(entries)
}

function compareOperations(old: Operation, now: Operation): string[] {
  return [
    ...(old.operationId === now.operationId ? [] : [`operationId ${old.operationId} removed`]),
    ...(isDeepStrictEqual(old.security, now.security) ? [] : ['has another security']),
    ...compareSchemas(parametersOf(old), parametersOf(now), 'parameter', ofRequests),
    ...(now.requestBody?.required && !old.requestBody?.required ? ['body required'] : []),
    ...compareContents(old.requestBody?.content, now.requestBody?.content, 'body', ofRequests),
    ...keys(old.responses).flatMap((status) => {
      const [was, is] = [old.responses[status], now.responses[status]]
      if (!is) return [`status ${status} removed`]
      return [
        ...compareSchemas(objectOf(was?.headers), objectOf(is.headers), `${status} header`, ofResponses),
        ...compareContents(was?.content, is.content, status, ofResponses),
      ]
    }),
  ]
}

const parametersOf = ({ parameters = [] }: Operation) =>
  objectOf(Object.fromEntries(parameters.map((one) => [`${one.in} ${one.name}`, one])))

/** Parameters and headers as the fields of an object. */
function objectOf(named: object = {}): Schema {
  const entries = Object.entries(named as Record<string, OpenAPIV3.ParameterObject>)
  return {
    properties: Object.fromEntries(entries.map(([name, { schema }]) => [name, schema as Schema])),
    required: entries.filter(([, { required }]) => required).map(([name]) => name),
  }
}

const compareContents = (old: Content | undefined, now: Content | undefined, place: string, rules: Rules): string[] =>
  keys(old).flatMap((type) => {
    const [was, is] = [old?.[type]?.schema as Schema, now?.[type]?.schema as Schema]
    return is ? compareSchemas(was, is, place, rules) : [`${place} ${type} removed`]
  })

/** By keyword of a schema, whether a change breaks something. Any change of a keyword without a rule does. */
// biome-ignore lint/suspicious/noExplicitAny: each keyword has its own type
type Rules = Record<string, (old: any, now: any) => boolean>

const forEach = (keywords: string[], rule: Rules[string]): Rules =>
  Object.fromEntries(keywords.map((keyword) => [keyword, rule]))
const never = () => false
const always = () => true
const lacks = (old: unknown[] = [], now: unknown[] = []) => old.some((one) => !now.includes(one))

const lowerBounds = ['minLength', 'minimum', 'minItems', 'minProperties']
const upperBounds = ['maxLength', 'maximum', 'maxItems', 'maxProperties']
const otherLimits = ['pattern', 'multipleOf', 'uniqueItems', 'exclusiveMinimum', 'exclusiveMaximum']
const ofBoth: Rules = {
  ...forEach(['title', 'description', 'example', 'deprecated'], never),
  // What is inside of these is compared on its own.
  properties: never,
  items: (old, now) => !old !== !now,
}

/** What clients send must not be rejected. */
const ofRequests: Rules = {
  ...ofBoth,
  ...forEach(lowerBounds, (old = -Infinity, now = -Infinity) => now > old),
  ...forEach(upperBounds, (old = Infinity, now = Infinity) => now < old),
  ...forEach([...otherLimits, 'format'], (_, now) => now !== undefined),
  nullable: (old, now) => old && !now,
  enum: (old, now) => now && (!old || lacks(old, now)),
  required: (old, now) => lacks(now, old),
}

/** What clients get must be what they expect. Fields and values may be added. */
const ofResponses: Rules = {
  ...ofBoth,
  ...forEach([...lowerBounds, ...upperBounds, ...otherLimits], never),
  nullable: (old, now) => now && !old,
  enum: lacks,
  required: lacks,
}

type Keyword = keyof Schema

function compareSchemas(old: Schema, now: Schema, place: string, rules: Rules): string[] {
  const changed = [...new Set([...keys(old), ...keys(now)])].filter(
    (name) => !isDeepStrictEqual(old[name as Keyword], now[name as Keyword]),
  )
  const broken = changed.filter((name) => (rules[name] ?? always)(old[name as Keyword], now[name as Keyword]))
  const show = (schema: Schema, name: string) => JSON.stringify(schema[name as Keyword])
  const fields = keys(old.properties).flatMap((name) => {
    const [was, is] = [old.properties?.[name] as Schema, now.properties?.[name] as Schema | undefined]
    return is ? compareSchemas(was, is, `${place}/${name}`, rules) : [`${place}/${name} removed`]
  })
  const items =
    'items' in old && 'items' in now
      ? compareSchemas(old.items as Schema, now.items as Schema, `${place}/0`, rules)
      : []
  return [
    ...broken.map((name) => `${place}: ${name} was ${show(old, name)}, is ${show(now, name)}`),
    ...fields,
    ...items,
  ]
}

const findSettingBreaks = (old: Interface['settings'], now: Interface['settings']): string[] =>
  keys(old).flatMap((name) => {
    const [was, is] = [old[name], now[name]]
    if (!is) return [`setting ${name} removed`]
    return [
      ...(was?.type === is.type ? [] : [`setting ${name} is ${is.type}`]),
      ...(was?.fallback === is.fallback ? [] : [`setting ${name} has another default`]),
    ]
  })

/** A part of a usage line: a bracket, an option with its value and its alternatives, or a word. */
const partPattern = /\[[^\]]+\]…?|--\S+( [^-[\s]\S*)*|\S+/g

function findCommandBreaks(old: string[], now: string[]): string[] {
  const nameOf = (usage: string) => /^[a-z]+( [a-z][a-z-]*)*/.exec(usage)?.[0] as string
  const partsOf = (usage: string) => {
    const parts = usage.slice(nameOf(usage).length).match(partPattern) ?? []
    const words = parts.filter((part) => !/^\[?--/.test(part))
    return parts.map((part) => ({ part, index: words.indexOf(part) }))
  }
  const after = new Map(now.map((usage) => [nameOf(usage), partsOf(usage)]))
  return old.flatMap((usage) => {
    const [name, was, is] = [nameOf(usage), partsOf(usage), after.get(nameOf(usage))]
    if (!is) return [`command ${name} removed`]
    const lost = was.filter((one) => !is.some((other) => other.index === one.index && covers(other.part, one.part)))
    const added = is.filter((one) => !was.some((other) => other.index === one.index && covers(one.part, other.part)))
    return [
      ...lost.map(({ part }) => `command ${name} no longer takes ${part}`),
      ...added.filter(({ part }) => !part.startsWith('[')).map(({ part }) => `command ${name} requires ${part}`),
    ]
  })
}

/** Whether all that the old part of a usage line allows is allowed by the new one. */
function covers(now: string, old: string): boolean {
  const alternatives = (part: string) => part.replace(/^\[|\]…?$/g, '').split('|')
  const keeps = (sign: RegExp) => sign.test(now) || !sign.test(old)
  return keeps(/^\[/) && keeps(/…$/) && !lacks(alternatives(old), alternatives(now))
}

/** The shape of an event: its fields, with their types. Lists have the shape of their first item. */
export function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf)
  if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shapeOf(inner)]))
}
