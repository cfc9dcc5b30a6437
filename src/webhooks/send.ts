import type { Clock } from '../clock.ts'
import type { HostList } from '../setting_types.ts'
import type { WebhookEvent } from './events.ts'
import { describeEvent } from './message.ts'
import type { Reply, Resolve } from './post.ts'
import { signBody } from './sign.ts'

/** Where to send to. Each of the secrets signs. */
export type Receiver = { kind: 'webhook' | 'slack'; url: string; secrets: string[] }

/** Makes one attempt. Rejects only when it is stopped. */
export type SendOnce = (receiver: Receiver, event: WebhookEvent, limits?: Limits) => Promise<Reply>

type Limits = { timeoutMs?: number; stopped?: AbortSignal }

type Options = {
  clock: Clock
  version: string
  publicUrl: string
  allowedHosts?: HostList | undefined
  resolve: Resolve
}

const defaultTimeoutMs = 15_000
const neverStopped = new AbortController().signal

export const createSender =
  ({ clock, version, publicUrl, allowedHosts, resolve }: Options): SendOnce =>
  async ({ kind, url, secrets }, event, { timeoutMs = defaultTimeoutMs, stopped = neverStopped } = {}) => {
    const { id, type, timestamp, data } = event
    const isSlack = kind === 'slack'
    const body = JSON.stringify(isSlack ? describeEvent(event, publicUrl) : { type, timestamp, data })
    const headers = {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'user-agent': `prompt-signals/${version}`,
      ...(isSlack ? {} : signBody(id, clock.now(), body, secrets)),
    }
    const { post } = await import('./post.ts')
    return post({ url, headers, body }, { allowedHosts, timeoutMs, stopped, resolve })
  }
