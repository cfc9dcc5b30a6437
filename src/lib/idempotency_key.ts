import { invalid } from '../errors.ts'

/** What is wrong with a text as an idempotency key, if anything is. */
export const problemOfKey = (key: string): string | undefined =>
  /^[\x20-\x7e]{1,255}$/.test(key) ? undefined : 'must have 1 to 255 printable ASCII characters'

/** Reads an Idempotency-Key: bare, or a quoted string as structured header fields have it. */
export function parseIdempotencyKey(header: string | null): string | null {
  if (header === null) return null
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header)?.[1]
  const key = quoted === undefined ? header : quoted.replace(/\\(.)/g, '$1')
  const message = problemOfKey(key)
  if (message) throw invalid('The Idempotency-Key is not valid.', [{ path: 'Idempotency-Key', message }])
  return key
}
