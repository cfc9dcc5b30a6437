import { Type } from '@sinclair/typebox'
import { PromptPath } from '../prompts/schema.ts'

/** This schema is for the documentation alone. */
export const SignalPath = Type.Object({
  ...PromptPath.properties,
  signal_id: Type.Integer({ format: 'int64', description: 'Identifier of the signal', examples: [7] }),
})

export const ErasedSignal = Type.Object(
  { data: Type.Object({ id: Type.Integer({ format: 'int64', description: 'Identifier of the signal' }) }) },
  { title: 'ErasedSignal', examples: [{ data: { id: 7 } }] },
)
