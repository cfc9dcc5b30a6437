import { Type } from '@sinclair/typebox'
import { invalid } from '../errors.ts'

/** How long clients may rely on their idempotency keys. */
export const keyRetentionMs = 24 * 3_600_000

const maxLength = 255
const pattern = '^[ -~]+$'
const printable = new RegExp(pattern)

export const idempotencyKeyType = (description: string) =>
  Type.String({ minLength: 1, maxLength, pattern, description })

/** Parses an Idempotency-Key header: bare, or a quoted string as in structured header fields. */
export function parseIdempotencyKey(header: string | null): string | null {
  if (header === null) return null
  const quoted = /^"((?:[^"\\]|\\["\\])*)"$/.exec(header)?.[1]
  const key = quoted === undefined ? header : quoted.replace(/\\(.)/g, '$1')
  if (key.length <= maxLength && printable.test(key)) return key
  throw invalid('The Idempotency-Key is not valid.', [
    { path: 'Idempotency-Key', message: `must have 1 to ${maxLength} printable ASCII characters` },
  ])
}
