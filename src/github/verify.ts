import { verify } from '@octokit/webhooks-methods'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { findWebhook } from './store.ts'

const shape = /^sha256=[0-9a-f]{64}$/
const organisationId = /^org_[0-9A-Za-z]{1,64}$/

/** Refuses what cannot be a signature, before the body is read. */
export function requireSignature(header: string | null): string {
  if (header === null || !shape.test(header)) throw unauthorized()
  return header
}

/** The webhook of the organisation; without one, the answer is that to a wrong signature. */
export async function requireWebhook(db: Db, org: string): Promise<{ organisationId: number; secret: string }> {
  const webhook = organisationId.test(org) ? await findWebhook(db.sql, org) : undefined
  // An answer to another question must not authenticate anybody.
  if (webhook?.org !== org) throw unauthorized()
  return webhook
}

/** Refuses a body that the secret has not signed. */
export async function verifyDelivery(secret: string, bytes: Uint8Array, signature: string): Promise<void> {
  const text = decode(bytes)
  // The library takes no empty text, and GitHub sends none.
  if (text === '' || !(await verify(secret, text, signature))) throw unauthorized()
}

/** Exactly, byte order mark included, for the signature is over the bytes; empty when they are no text. */
function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return ''
  }
}

const unauthorized = () =>
  new ServiceError(
    'unauthorized',
    'The delivery must be signed in X-Hub-Signature-256 with the secret of this organisation’s webhook.',
    {},
    { 'www-authenticate': 'X-Hub-Signature-256' },
  )
