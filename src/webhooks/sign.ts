import { createHmac } from 'node:crypto'

/** The headers by Standard Webhooks 1.0.0, with a signature of each secret. The key of a secret is base64. */
export function signBody(id: string, at: Date, body: string, secrets: string[]): Record<string, string> {
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
