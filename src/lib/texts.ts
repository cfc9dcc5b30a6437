import { invalid } from '../errors.ts'

export const maxTextLength = 200

/** Without control characters, and without half of a surrogate pair, which Postgres takes in no text. */
export const isPlain = (text: string): boolean => !/\p{Cc}/u.test(text) && text.isWellFormed()

/** A short text of one line without the blanks around it; undefined for any other. */
export function parseText(text: string): string | undefined {
  const trimmed = text.trim()
  return trimmed !== '' && trimmed.length <= maxTextLength && isPlain(trimmed) ? trimmed : undefined
}

/** Validates a name that somebody gives. */
export function requireText(what: string, text: string): string {
  const parsed = parseText(text)
  if (parsed !== undefined) return parsed
  const message = `must have 1 to ${maxTextLength} characters, none of them a control character`
  throw invalid(`The ${what} is not valid.`, [{ path: `/${what}`, message }])
}
