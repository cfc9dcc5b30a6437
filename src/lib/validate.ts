import type { Static, TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { type Detail, invalid } from '../errors.ts'

/** A check that returns the value with its type, or throws `validation_error` naming each wrong place. */
export function createValidator<S extends TSchema>(schema: S, what: string): (value: unknown) => Static<S> {
  let compiled: TypeCheck<S> | undefined
  return (value) => {
    // At the first use, for a program that starts has other things to do.
    compiled ??= TypeCompiler.Compile(schema)
    if (compiled.Check(value)) return value
    const details = new Map<string, Detail>()
    for (const { path, message, schema: wanted } of compiled.Errors(value)) {
      if (!details.has(path)) details.set(path, { path, message: explain(wanted, message) })
    }
    throw invalid(`${what} is not valid.`, [...details.values()].slice(0, 10))
  }
}

/** The library says "Expected union value" for a choice; the choices themselves say what to do. */
function explain(wanted: TSchema, message: string): string {
  const choices: unknown[] = (wanted.anyOf ?? []).map((choice: TSchema) => choice.const)
  if (choices.length > 0 && choices.every((choice) => typeof choice === 'string')) {
    return `must be ${choices.join(' or ')}`
  }
  if (message.includes('pattern') || message.includes('match')) return 'must have no characters that are not allowed'
  return message.replace(/^Expected (?=[aeiou])/, 'must be an ').replace(/^Expected /, 'must be a ')
}
