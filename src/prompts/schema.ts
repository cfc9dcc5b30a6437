import { Type } from '@sinclair/typebox'

export const PromptId = Type.String({
  pattern: '^pmt_[0-9A-Za-z_-]{1,64}$',
  description: "The prompt's public ID",
  examples: ['pmt_greeting'],
})

/** This schema is for the documentation alone. */
export const PromptPath = Type.Object({ prompt_id: PromptId })
