import { FormatRegistry, type Static, type TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler, type ValueError, ValueErrorType } from '@sinclair/typebox/compiler'
import { type Detail, invalid } from '../errors.ts'

// The library rejects texts of a format that it does not know. Times are checked where they are parsed, which gives a
// better message.
FormatRegistry.Set('date-time', () => true)

/** A check that returns the value with its type, or throws `validation_error` naming each wrong place. */
export function createValidator<S extends TSchema>(schema: S, what: string): (value: unknown) => Static<S> {
  let compiled: TypeCheck<S> | undefined
  return (value) => {
    // The schema is compiled at its first use, to keep the start short.
    compiled ??= TypeCompiler.Compile(schema)
    if (compiled.Check(value)) return value
    const details = new Map<string, Detail>()
    for (const error of compiled.Errors(value)) {
      if (!details.has(error.path)) details.set(error.path, { path: error.path, message: explain(error) })
    }
    throw invalid(`${what} is not valid.`, [...details.values()].slice(0, 10))
  }
}

const choicesIn = new Intl.ListFormat('en-GB', { type: 'disjunction' })

/** Rewords the library's messages, such as "Expected union value", for the caller who has to correct the value. */
function explain({ type, schema, message }: ValueError): string {
  const choices: unknown[] = (schema.anyOf ?? []).map((choice: TSchema) => choice.const)
  if (choices.length > 0 && choices.every((choice) => typeof choice === 'string')) {
    return `must be ${choicesIn.format(choices)}`
  }
  if (type === ValueErrorType.ObjectRequiredProperty) return 'must be given'
  if (type === ValueErrorType.StringMinLength) return 'must not be empty'
  if (type === ValueErrorType.StringMaxLength) return `must have at most ${schema.maxLength} characters`
  if (type === ValueErrorType.StringPattern) return 'must have no characters that are not allowed'
  return message.replace(/^Expected (?=[aeiou])/, 'must be an ').replace(/^Expected /, 'must be a ')
}
