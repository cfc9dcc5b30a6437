import { Type } from '@sinclair/typebox'
import { bodyOf } from './validate.ts'

const defaultSeconds = 86_400

/** The rotation of a key or a secret, of which the old one stays valid for a while. Parsed to milliseconds. */
export function rotationBody(title: string, maxDays: number, description: string) {
  const overlap = Type.Integer({ minimum: 0, maximum: maxDays * 86_400, default: defaultSeconds, description })
  const examples = [{ overlap_seconds: defaultSeconds }]
  const schema = Type.Object({ overlap_seconds: Type.Optional(overlap) }, { title, examples })
  return bodyOf(schema, 'The rotation', ({ overlap_seconds = defaultSeconds }) => overlap_seconds * 1_000)
}
