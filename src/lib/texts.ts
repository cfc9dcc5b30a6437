import { invalid } from '../errors.ts'

const maxLength = 200

/** Validates a name that an operator gives: not blank, not long, no control characters. */
export function requireText(what: string, text: string): string {
  const trimmed = text.trim()
  if (trimmed === '' || trimmed.length > maxLength || /\p{Cc}/u.test(trimmed) || !trimmed.isWellFormed()) {
    throw invalid(`The ${what} is not valid.`, [
      { path: `/${what}`, message: `must have 1 to ${maxLength} characters, none of them a control character` },
    ])
  }
  return trimmed
}
