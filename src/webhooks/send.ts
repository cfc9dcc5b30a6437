import { createHmac } from 'node:crypto'
import type { HostList } from '../setting_types.ts'
import type { WebhookEvent } from './events.ts'
import { describeEvent } from './message.ts'
import type { Reply, Resolve } from './post.ts'

/** Where to send to. Each of the secrets signs. */
export type Receiver = { kind: 'webhook' | 'slack'; url: string; secrets: string[] }

/** Makes one attempt, signed for the time `at`. Rejects only when it is stopped. */
export type SendOnce = (receiver: Receiver, event: WebhookEvent, at: Date, stopped?: AbortSignal) => Promise<Reply>

type Options = {
  version: string
  publicUrl: string
  allowedHosts?: HostList | undefined
  resolve: Resolve
}

const timeoutMs = 15_000
const neverStopped = new AbortController().signal

export const createSender =
  ({ version, publicUrl, allowedHosts, resolve }: Options): SendOnce =>
  async ({ kind, url, secrets }, event, at, stopped = neverStopped) => {
    const { id, type, timestamp, data } = event
    const isSlack = kind === 'slack'
    const body = JSON.stringify(isSlack ? describeEvent(event, publicUrl) : { type, timestamp, data })
    const headers = {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'user-agent': `prompt-signals/${version}`,
      ...(isSlack ? {} : signBody(id, at, body, secrets)),
    }
    const { post } = await import('./post.ts')
    return post({ url, headers, body }, { allowedHosts, timeoutMs, stopped, resolve })
  }

/** The headers by Standard Webhooks 1.0.0, with a signature of each secret. The key of a secret is base64. */
function signBody(id: string, at: Date, body: string, secrets: string[]): Record<string, string> {
  const timestamp = Math.floor(at.getTime() / 1_000)
  const sign = (secret: string) =>
    createHmac('sha256', Buffer.from(secret.replace('whsec_', ''), 'base64'))
      .update(`${id}.${timestamp}.${body}`)
      .digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': secrets.map((secret) => `v1,${sign(secret)}`).join(' '),
  }
}
