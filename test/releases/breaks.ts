// What an interface no longer promises to those who use an older one.
import type { OpenAPIV3 } from 'openapi-types'
import type { Interface } from '../../scripts/interface.ts'
import { parseUsage } from '../../src/cli/grammar.ts'
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

export function findDocumentBreaks(old: OpenAPIV3.Document, now: OpenAPIV3.Document): string[] {
  const [before, after] = [operationsOf(old), operationsOf(now)]
  const types = keys(old.components?.schemas).filter((name) => !now.components?.schemas?.[name])
  return [
    ...types.map((name) => `schema ${name} removed`),
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
  const nameOf = (one: OpenAPIV3.ParameterObject) => `${one.in} parameter ${one.name}`
  const named = (one: Operation) => new Map(one.parameters?.map((parameter) => [nameOf(parameter), parameter]))
  const [before, after] = [named(old), named(now)]
  return [
    ...(old.operationId === now.operationId ? [] : [`operationId ${old.operationId} removed`]),
    ...[...before].flatMap(([name, { schema }]) => {
      const other = after.get(name)
      return other ? narrowings(schema as Schema, other.schema as Schema, name) : [`${name} removed`]
    }),
    ...[...after]
      .filter(([name, one]) => one.required && !before.get(name)?.required)
      .map(([name]) => `${name} required`),
    ...(now.requestBody?.required && !old.requestBody?.required ? ['body required'] : []),
    ...compareContents(old.requestBody?.content, now.requestBody?.content, 'body', narrowings),
    ...keys(old.responses).flatMap((status) => {
      const [was, is] = [old.responses[status], now.responses[status]]
      if (!is) return [`status ${status} removed`]
      const headers = keys(was?.headers).filter((name) => !is.headers?.[name])
      return [
        ...headers.map((name) => `${status} header ${name} removed`),
        ...compareContents(was?.content, is.content, status, losses),
      ]
    }),
  ]
}

type Compare = (old: Schema, now: Schema, place: string) => string[]

const compareContents = (
  old: Content | undefined,
  now: Content | undefined,
  place: string,
  compare: Compare,
): string[] =>
  keys(old).flatMap((type) => {
    const [was, is] = [old?.[type]?.schema as Schema, now?.[type]?.schema as Schema]
    return is ? compare(was, is, place) : [`${place} ${type} removed`]
  })

const isAtLeast = ['minLength', 'minimum', 'minItems', 'minProperties'] as const
const isAtMost = ['maxLength', 'maximum', 'maxItems', 'maxProperties'] as const
const isExactly = ['pattern', 'format', 'multipleOf', 'uniqueItems'] as const

/** What the new schema rejects that the old one accepted, for what clients send. */
export function narrowings(old: Schema, now: Schema, place: string): string[] {
  const found = (isNarrower: boolean, what: string) => (isNarrower ? [`${place} ${what}`] : [])
  const values = old.enum?.filter((value) => now.enum && !now.enum.includes(value)) ?? []
  return [
    ...found(old.type !== now.type, `is ${now.type}, not ${old.type}`),
    ...found(Boolean(old.nullable && !now.nullable), 'rejects null'),
    ...found(values.length > 0 || Boolean(now.enum && !old.enum), `rejects ${values.join(', ') || 'other values'}`),
    ...isAtLeast.flatMap((name) => found((now[name] ?? -Infinity) > (old[name] ?? -Infinity), `has a larger ${name}`)),
    ...isAtMost.flatMap((name) => found((now[name] ?? Infinity) < (old[name] ?? Infinity), `has a smaller ${name}`)),
    ...isExactly.flatMap((name) => found(now[name] !== undefined && now[name] !== old[name], `has another ${name}`)),
    ...found(old.additionalProperties !== false && now.additionalProperties === false, 'rejects other fields'),
    ...(now.required ?? []).flatMap((name) => found(!old.required?.includes(name), `requires ${name}`)),
    ...compareParts(old, now, place, narrowings),
  ]
}

/** What the new schema no longer promises, for what clients get. Fields and values may be added. */
export function losses(old: Schema, now: Schema, place: string): string[] {
  const found = (isLost: boolean, what: string) => (isLost ? [`${place} ${what}`] : [])
  return [
    ...found(old.type !== now.type, `is ${now.type}, not ${old.type}`),
    ...found(Boolean(now.nullable && !old.nullable), 'can be null'),
    ...found(old.format !== now.format, `has another format`),
    ...(old.required ?? []).flatMap((name) =>
      found(Boolean(now.properties?.[name]) && !now.required?.includes(name), `may lack ${name}`),
    ),
    ...compareParts(old, now, place, losses),
  ]
}

function compareParts(old: Schema, now: Schema, place: string, compare: Compare): string[] {
  const fields = keys(old.properties).flatMap((name) => {
    const [was, is] = [old.properties?.[name] as Schema, now.properties?.[name] as Schema | undefined]
    return is ? compare(was, is, `${place}/${name}`) : [`${place}/${name} removed`]
  })
  if (!('items' in old && 'items' in now)) return fields
  return [...fields, ...compare(old.items as Schema, now.items as Schema, `${place}/0`)]
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

function findCommandBreaks(old: string[], now: string[]): string[] {
  const nameOf = (usage: string) => /^[a-z]+( [a-z][a-z-]*)*/.exec(usage)?.[0] as string
  const after = new Map(now.map((usage) => [nameOf(usage), parseUsage(usage)]))
  return old.flatMap((usage) => {
    const [name, was] = [nameOf(usage), parseUsage(usage)]
    const is = after.get(name)
    if (!is) return [`command ${name} removed`]
    const isKnown = (option: { name: string }) => was.options.find((one) => one.name === option.name)
    const missing = was.options.filter((option) => !is.options.some((one) => one.name === option.name))
    const required = is.options.filter((option) => option.isRequired && !isKnown(option)?.isRequired)
    const changed = is.options.filter((option) => {
      const known = isKnown(option)
      return known && ((known.value === null) !== (option.value === null) || (known.multiple && !option.multiple))
    })
    const choices = was.options.flatMap(({ name, value }) => {
      const other = is.options.find((one) => one.name === name)?.value ?? ''
      return /^[a-z_]+\|/.test(value ?? '')
        ? (value ?? '')
            .split('|')
            .filter((one) => !other.split('|').includes(one))
            .map((one) => `--${name} ${one}`)
        : []
    })
    return [
      ...missing.map((option) => `command ${name} --${option.name} removed`),
      ...required.map((option) => `command ${name} --${option.name} required`),
      ...changed.map((option) => `command ${name} --${option.name} takes another value`),
      ...choices.map((choice) => `command ${name} ${choice} removed`),
      ...(is.least > was.least || is.positionals.length < was.positionals.length
        ? [`command ${name} takes other words`]
        : []),
    ]
  })
}

/** The shape of an event: its fields, with their types. Lists have the shape of their first item. */
export function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf)
  if (value === null || typeof value !== 'object') return value === null ? 'null' : typeof value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, shapeOf(inner)]))
}
