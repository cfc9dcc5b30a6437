import { FormatRegistry, type Static, type TObject, type TSchema } from '@sinclair/typebox'
import { Value, type ValueError, ValueErrorType } from '@sinclair/typebox/value'
import { type Detail, invalid, type ServiceError } from '../errors.ts'

// The library rejects unknown formats. Times are validated where they are parsed, with a better message.
FormatRegistry.Set('date-time', () => true)

const maxDetails = 10

/** Creates a check that returns the typed value, or throws `validation_error` naming each invalid place. */
export function createValidator<S extends TSchema>(schema: S, what: string): (value: unknown) => Static<S> {
  return (value) => {
    // The schema is not compiled, because the binary runs no code that is made of strings (scripts/compile.ts).
    if (Value.Check(schema, value)) return value
    const details = new Map<string, Detail>()
    for (const error of listErrors(schema, value)) {
      if (!details.has(error.path)) details.set(error.path, { path: error.path, message: explain(error) })
      // Listing the errors of a million items would block the event loop for seconds.
      if (details.size === maxDetails || error.type === ValueErrorType.ArrayMaxItems) break
    }
    throw invalid(`${what} is not valid.`, [...details.values()])
  }
}

/** The body of a request: how it is validated, and what the document says of it. */
export type JsonBody<T> = {
  schema: TObject
  parse(given: unknown): T
  /** A 422 as an example: for an empty body, or for a first field that is null. */
  readonly invalid: { message: string; example: Record<string, unknown> } | undefined
}

/** `refine` may reject more, or turn what was validated into something else. */
export function bodyOf<S extends TObject, T = Static<S>>(
  schema: S,
  what: string,
  refine = (given: Static<S>) => given as T,
): JsonBody<T> {
  return jsonBody(schema, createValidator(schema, what), refine)
}

export const changeOf = <S extends TObject, T = Static<S>>(
  schema: S,
  refine = (given: Static<S>) => given as T,
): JsonBody<T> => jsonBody(schema, createChangeValidator(schema), refine)

function jsonBody<S extends TObject, T>(
  schema: S,
  validate: (given: unknown) => Static<S>,
  refine: (given: Static<S>) => T,
): JsonBody<T> {
  return {
    schema,
    parse: (given) => refine(validate(given)),
    get invalid() {
      const [first = ''] = Object.keys(schema.properties)
      return rejectionOf(validate, {}) ?? rejectionOf(validate, { [first]: null })
    },
  }
}

function rejectionOf(validate: (given: unknown) => unknown, given: object) {
  try {
    validate(given)
  } catch (error) {
    const { message, context } = error as ServiceError
    return { message, example: context }
  }
}

/** For a change, which must give something. Returns only what the schema knows. */
function createChangeValidator<S extends TObject>(schema: S): (value: unknown) => Static<S> {
  const validate = createValidator(schema, 'The change')
  const names = Object.keys(schema.properties)
  return (value) => {
    const given = Object.entries(validate(value) as object).filter(
      ([name, change]) => names.includes(name) && change !== undefined,
    )
    if (given.length === 0) {
      throw invalid('The change is not valid.', [
        { path: '', message: `must give at least one of ${names.join(', ')}` },
      ])
    }
    return Object.fromEntries(given) as Static<S>
  }
}

/** Lazy. Of a nullable value that has the right type, lists what is wrong with it: the library says only "Expected union value". */
function* listErrors(schema: TSchema, value: unknown): Iterable<ValueError> {
  for (const error of Value.Errors(schema, value)) {
    const [inner, nothing, ...others] = (error.schema.anyOf ?? []) as TSchema[]
    const isNullable = nothing?.type === 'null' && others.length === 0
    if (isNullable) yield* expandNullable(error, `Expected ${inner?.type}`)
    else yield error
  }
}

function* expandNullable(error: ValueError, wrongType: string): Iterable<ValueError> {
  for (const inner of error.errors[0] ?? []) {
    const hasWrongType = inner.path === error.path && inner.message === wrongType
    yield hasWrongType ? error : inner
    if (hasWrongType) return
  }
}

const listChoices = (choices: string[]): string => new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(choices)

const withArticle = (type: string): string => (type === 'null' ? type : `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`)

/** Rewords the library's messages, such as "Expected union value"; completes the name of the value. */
function explain({ type, schema, message }: ValueError): string {
  const choices: unknown[] = (schema.anyOf ?? []).map((choice: TSchema) => choice.const)
  if (choices.length > 0 && choices.every((choice) => typeof choice === 'string')) {
    return `must be ${listChoices(choices)}`
  }
  if (schema.anyOf) return `must be ${listChoices(schema.anyOf.map((choice: TSchema) => withArticle(choice.type)))}`
  switch (type) {
    case ValueErrorType.ObjectRequiredProperty:
      return 'must be given'
    case ValueErrorType.StringMinLength:
    case ValueErrorType.ArrayMinItems:
      return 'must not be empty'
    case ValueErrorType.StringMaxLength:
      return `must have at most ${schema.maxLength} characters`
    case ValueErrorType.StringPattern:
      return 'contains characters that are not allowed'
    case ValueErrorType.ArrayMaxItems:
      return `must have at most ${schema.maxItems} items`
    case ValueErrorType.IntegerMinimum:
      return `must be at least ${schema.minimum}`
    case ValueErrorType.IntegerMaximum:
      return `must be at most ${schema.maximum}`
    default:
      return `must be ${withArticle(message.replace(/^Expected /, ''))}`
  }
}
