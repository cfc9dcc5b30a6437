import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { findWebhook, type Webhook } from './store.ts'

const wellFormedSignature = /^sha256=[0-9a-f]{64}$/
const wellFormedOrganisation = /^org_[0-9A-Za-z]{1,64}$/
const algorithm = { name: 'HMAC', hash: 'SHA-256' }

/** Rejects what cannot be a signature, before the body is read. */
export function requireSignature(header: string | null): string {
  if (header === null || !wellFormedSignature.test(header)) throw unauthorized()
  return header
}

/** Finds the webhook of the organisation; without one, the error is that of a wrong signature. */
export async function requireWebhook(db: Db, org: string): Promise<Webhook> {
  const webhook = wellFormedOrganisation.test(org) ? await findWebhook(db.sql, org) : undefined
  if (!webhook) throw unauthorized()
  // With another organisation's secret, a delivery would be written to the histories of that one.
  if (webhook.org !== org) throw new Error('the database answered for another organisation')
  return webhook
}

/** Rejects a body that the secret has not signed. The comparison takes the same time whatever differs. */
export async function verifyDelivery(secret: string, body: Uint8Array, signature: string): Promise<void> {
  const key = await crypto.subtle.importKey('raw', new TextEncoder().encode(secret), algorithm, false, ['verify'])
  const digest = Buffer.from(signature.slice('sha256='.length), 'hex')
  if (!(await crypto.subtle.verify('HMAC', key, digest, body as Uint8Array<ArrayBuffer>))) throw unauthorized()
}

const unauthorized = () =>
  new ServiceError(
    'unauthorized',
    'The delivery must be signed in X-Hub-Signature-256 with the secret of this organisation’s webhook.',
    {},
    { 'www-authenticate': 'X-Hub-Signature-256' },
  )
