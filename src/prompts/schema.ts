import { Type } from '@sinclair/typebox'

export const PromptId = Type.String({
  pattern: '^pmt_[0-9A-Za-z_-]{1,64}$',
  description: "The prompt's public ID",
  examples: ['pmt_greeting'],
})
