import { Type } from '@sinclair/typebox'
import { envelopeOf } from '../lib/typebox.ts'
import { PromptPath } from '../prompts/schema.ts'

/** This schema is for the documentation alone. */
export const SignalPath = Type.Object({
  ...PromptPath.properties,
  signal_id: Type.Integer({ format: 'int64', description: 'Identifier of the signal', examples: [7] }),
})

const id = Type.Integer({ format: 'int64', description: 'Identifier of the signal' })

export const ErasedSignal = envelopeOf(Type.Object({ id }), 'ErasedSignal', { id: 7 })
