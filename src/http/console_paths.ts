/** The path of every page of the console. The service serves them, so that each can be reloaded and shared. */
export const consolePaths = [
  '/',
  '/prompts',
  '/prompts/:prompt_id',
  '/prompts/:prompt_id/compare',
  '/signals',
  '/usage',
  '/settings',
  '/settings/keys',
  '/settings/prompts',
  '/settings/webhooks',
  '/settings/endpoints',
  '/settings/audit',
] as const

export type ConsolePath = (typeof consolePaths)[number]
