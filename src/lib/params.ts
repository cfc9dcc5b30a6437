import { type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { type Detail, invalid, notFound } from '../errors.ts'
import { maxTextLength, parseText } from './texts.ts'
import { expectedTime, parseTime } from './times.ts'
import { literals } from './typebox.ts'

export type Param<T> = {
  schema: TSchema
  /** Undefined rejects what was given. */
  parse(texts: string[]): T | undefined
  /** Completes "must be …". */
  expected: string
  fallback: T
  /** Whether every value is accepted, so that no 422 names it. */
  isLenient?: true
}

type Table = Record<string, Param<unknown>>
type Values<T extends Table> = { [Name in keyof T]: T[Name] extends Param<infer Value> ? Value : never }

type Reject = (name: string, message: string) => void

export type Params<Query> = {
  schema: TObject
  /** What a 422 says of its first strict parameter, for the OpenAPI document. */
  problem: Detail
  /** Throws `validation_error` naming each bad parameter: ignoring one would widen the result. */
  parse(given: URLSearchParams): Query
}

export type QueryOf<P> = P extends Params<infer Query> ? Query : never

/** The parameters of an endpoint. `check` sees the parsed values, and may reject more of them or add to them. */
export function defineParams<T extends Table, Query = Values<T>>(
  table: T,
  check: (values: Values<T>, reject: Reject, given: URLSearchParams) => Query = (values) => values as Query,
): Params<Query> {
  const entries = Object.entries(table)
  const problemOf = ([path, { expected }]: [string, Param<unknown>]): Detail => ({
    path,
    message: `must be ${expected}`,
  })
  const strict = entries.find(([, { isLenient }]) => !isLenient) as [string, Param<unknown>]
  return {
    schema: Type.Object(Object.fromEntries(entries.map(([name, { schema }]) => [name, schema])) as TProperties),
    problem: problemOf(strict),
    parse(given) {
      const problems: Detail[] = []
      const parseOne = ([name, one]: [string, Param<unknown>]) => {
        const texts = given.getAll(name)
        if (texts.length === 0) return one.fallback
        const value = one.parse(texts)
        if (value === undefined)
          problems.push(texts.length > 1 ? { path: name, message: 'must be given only once' } : problemOf([name, one]))
        return value ?? one.fallback
      }
      const values = Object.fromEntries(entries.map((entry) => [entry[0], parseOne(entry)])) as Values<T>
      const query = check(values, (path, message) => problems.push({ path, message }), given)
      if (problems.length > 0) throw invalidQuery(...problems.slice(0, 10))
      return query
    },
  }
}

/** Writes parameters for another request, lists with commas. Leaves out null. */
export function writeParams(query: Record<string, string | number | Date | string[] | null>): URLSearchParams {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== null) search.set(name, value instanceof Date ? value.toISOString() : String(value))
  }
  return search
}

export const invalidQuery = (...details: Detail[]) => invalid('The query is not valid.', details)

/** A parameter that may be given once. Not given, its value is `fallback`, which is documented as its default, or null. */
export function param<T, Fallback extends T | null = null>(
  schema: TSchema,
  parse: (text: string) => T | undefined,
  expected: string,
  fallback = null as Fallback,
): Param<T | Fallback> {
  return {
    schema: fallback === null ? schema : { ...schema, default: fallback },
    parse: ([text = '', ...others]) => (others.length === 0 ? parse(text) : undefined),
    expected,
    fallback,
  }
}

export function choiceParam<const T extends string, Fallback extends T | null = null>(
  choices: readonly T[],
  description: string,
  fallback = null as Fallback,
) {
  const parse = (text: string) => choices.find((choice) => choice === text)
  return param<T, Fallback>(literals(choices, { description }), parse, `one of ${choices.join(', ')}`, fallback)
}

/** Text to search for, in any letter case. */
export const textParam = (description: string) =>
  param(
    Type.String({
      minLength: 1,
      maxLength: maxTextLength,
      description: `${description} Letter case is ignored.`,
    }),
    parseText,
    `a text of 1 to ${maxTextLength} characters without control characters`,
  )

export const timeParam = (description: string) =>
  param(
    Type.String({ format: 'date-time', description: `${description} A date means 00:00 UTC.` }),
    parseTime,
    expectedTime,
  )

export const idParam = (description: string, expected: string) =>
  param(Type.Integer({ format: 'int64', minimum: 1, description }), parseId, expected)

/** Parses an id that JavaScript holds exactly. */
export function parseId(text: string): number | undefined {
  const id = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : Number.NaN
  return Number.isSafeInteger(id) ? id : undefined
}

/** The id in a path. What is no id is not found. */
export function requireId(text: string): number {
  const id = parseId(text)
  if (id === undefined) throw notFound()
  return id
}

export const defaultPageSize = 25
export const maxPageSize = 100

/** A positive integer. Anything else gets the default: the interface has no error for `page` and `limit`. */
const lenientParam = (fallback: number, maximum: number, schema: object, description: string): Param<number> => ({
  schema: Type.Integer({
    minimum: 1,
    ...schema,
    default: fallback,
    description: `${description} Anything else is served as the default.`,
  }),
  parse: ([text = '', ...others]) =>
    others.length === 0 && /^0*[1-9]\d*$/.test(text) ? Math.min(Number(text), maximum) : fallback,
  expected: 'a positive integer',
  fallback,
  isLenient: true,
})

export const limitParam = lenientParam(
  defaultPageSize,
  maxPageSize,
  { maximum: maxPageSize },
  'Results per page. More than the maximum is served as the maximum.',
)

export const pageParam = lenientParam(1, Number.MAX_VALUE, {}, 'Page number, from 1.')
