import { Type } from '@sinclair/typebox'
import { createValidator } from './validate.ts'

const defaultSeconds = 86_400

/** The rotation of a key or a secret, of which the old one stays valid for a while. */
export function defineRotation(title: string, maxDays: number, description: string) {
  const overlap = Type.Integer({ minimum: 0, maximum: maxDays * 86_400, default: defaultSeconds, description })
  const examples = [{ overlap_seconds: defaultSeconds }]
  const body = Type.Object({ overlap_seconds: Type.Optional(overlap) }, { title, examples })
  const validate = createValidator(body, 'The rotation')
  return {
    maxDays,
    /** For the OpenAPI document. */
    described: {
      isIdempotent: true,
      body,
      invalid: {
        message: 'The rotation is not valid.',
        example: { details: [{ path: '/overlap_seconds', message: 'must be an integer' }] },
      },
    },
    /** The overlap, in milliseconds. */
    parse: (given: unknown): number => (validate(given).overlap_seconds ?? defaultSeconds) * 1_000,
  }
}
