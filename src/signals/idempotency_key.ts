import { invalid } from '../errors.ts'

/** Reads an Idempotency-Key: bare, or a quoted string as structured header fields have it. */
export function readIdempotencyKey(header: string | null): string | null {
  if (header === null) return null
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header)?.[1]
  const key = quoted === undefined ? header : quoted.replace(/\\(.)/g, '$1')
  if (!/^[\x20-\x7e]{1,255}$/.test(key)) {
    throw invalid('The Idempotency-Key is not valid.', [
      { path: 'Idempotency-Key', message: 'must have 1 to 255 printable ASCII characters' },
    ])
  }
  return key
}
