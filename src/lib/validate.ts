import { FormatRegistry, type Static, type TObject, type TSchema } from '@sinclair/typebox'
import { Value, type ValueError, ValueErrorType } from '@sinclair/typebox/value'
import { type Detail, invalid } from '../errors.ts'

// The library rejects unknown formats. Times are validated where they are parsed, with a better message.
FormatRegistry.Set('date-time', () => true)

/** Creates a check that returns the typed value, or throws `validation_error` naming each invalid place. */
export function createValidator<S extends TSchema>(schema: S, what: string): (value: unknown) => Static<S> {
  return (value) => {
    // The schema is not compiled, because the binary runs no code that is made of strings (scripts/compile.ts).
    if (Value.Check(schema, value)) return value
    const details = new Map<string, Detail>()
    for (const error of Value.Errors(schema, value)) {
      if (!details.has(error.path)) details.set(error.path, { path: error.path, message: explain(error) })
    }
    throw invalid(`${what} is not valid.`, [...details.values()].slice(0, 10))
  }
}

/** For a change, which must give something. Returns only what the schema knows. */
export function createChangeValidator<S extends TObject>(schema: S, what: string): (value: unknown) => Static<S> {
  const validate = createValidator(schema, what)
  const names = Object.keys(schema.properties)
  return (value) => {
    const given = Object.entries(validate(value) as object).filter(
      ([name, change]) => names.includes(name) && change !== undefined,
    )
    if (given.length === 0) {
      throw invalid(`${what} is not valid.`, [{ path: '', message: `must give at least one of ${names.join(', ')}` }])
    }
    return Object.fromEntries(given) as Static<S>
  }
}

const listChoices = (choices: string[]): string => new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(choices)

/** Rewords the library's messages, such as "Expected union value"; completes the name of the value. */
function explain({ type, schema, message }: ValueError): string {
  const choices: unknown[] = (schema.anyOf ?? []).map((choice: TSchema) => choice.const)
  if (choices.length > 0 && choices.every((choice) => typeof choice === 'string')) {
    return `must be ${listChoices(choices)}`
  }
  if (schema.anyOf) return `must be ${listChoices(schema.anyOf.map((choice: TSchema) => choice.type))}`
  if (type === ValueErrorType.ObjectRequiredProperty) return 'must be given'
  if (type === ValueErrorType.StringMinLength) return 'must not be empty'
  if (type === ValueErrorType.StringMaxLength) return `must have at most ${schema.maxLength} characters`
  if (type === ValueErrorType.StringPattern) return 'contains characters that are not allowed'
  return message.replace(/^Expected (?=[aeiou])/, 'must be an ').replace(/^Expected /, 'must be a ')
}
