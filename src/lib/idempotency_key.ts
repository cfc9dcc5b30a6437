import { Type } from '@sinclair/typebox'
import { invalid } from '../errors.ts'

const maxKeyLength = 255
const keyPattern = '^[ -~]+$'
const wellFormedKey = new RegExp(keyPattern)

export const idempotencyKeyType = (description: string) =>
  Type.String({ minLength: 1, maxLength: maxKeyLength, pattern: keyPattern, description })

/** Parses an Idempotency-Key: bare, or a quoted string as in structured header fields. */
export function parseIdempotencyKey(header: string | null): string | null {
  if (header === null) return null
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header)?.[1]
  const key = quoted === undefined ? header : quoted.replace(/\\(.)/g, '$1')
  if (key.length <= maxKeyLength && wellFormedKey.test(key)) return key
  throw invalid('The Idempotency-Key is not valid.', [
    { path: 'Idempotency-Key', message: `must have 1 to ${maxKeyLength} printable ASCII characters` },
  ])
}
