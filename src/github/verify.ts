import { verify } from '@octokit/webhooks-methods'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { randomBase62 } from '../lib/base62.ts'
import { findWebhook } from './store.ts'

const shape = /^sha256=[0-9a-f]{64}$/
const organisationId = /^org_[0-9A-Za-z]{1,64}$/

/** Stands in where there is no secret, so that the same work is done and nothing can match it. */
const nobodysSecret = randomBase62(43)

/** Refuses what cannot be a signature, before the body is read. */
export function requireSignature(header: string | null): string {
  if (header === null || !shape.test(header)) throw unauthorized()
  return header
}

/** The organisation whose secret signed the body; whatever is wrong, the answer is the same. */
export async function verifyDelivery(db: Db, org: string, bytes: Uint8Array, signature: string): Promise<number> {
  const webhook = organisationId.test(org) ? await findWebhook(db.sql, org) : undefined
  const text = decode(bytes)
  // The library takes no empty text, and GitHub sends none.
  const isGenuine = text !== '' && (await verify(webhook?.secret ?? nobodysSecret, text, signature))
  if (!webhook || !isGenuine) throw unauthorized()
  return webhook.organisationId
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
