import type { WebhookEvent } from './events.ts'

/** What a Slack endpoint is sent. */
export const describeEvent = ({ type }: WebhookEvent, _publicUrl: string): { text: string; blocks: object[] } => ({
  text: type,
  blocks: [],
})
