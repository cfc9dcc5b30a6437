// The webhook of an organisation: its secret, and the check of signatures with it.
import { type Actor, operator, permitRequestOf, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { randomBase62 } from '../lib/base62.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { pingResult, resultOf } from './schema.ts'
import { findWebhook, selectWebhookState, upsertWebhook, type Webhook } from './store.ts'

/** More than 256 bits of randomness. */
const secretLength = 43
const wellFormedSignature = /^sha256=[0-9a-f]{64}$/
const wellFormedOrganisation = /^org_[0-9A-Za-z]{1,64}$/
const algorithm = { name: 'HMAC', hash: 'SHA-256' }

/** Creates the secret of an organisation's webhook, which replaces an earlier one. It is not shown again. */
export async function setWebhook(db: Db, clock: Clock, org: string, actor: Actor = operator) {
  const { id: organisationId } = await requireOrganisation(db, org)
  const secret = randomBase62(secretLength)
  await db.transaction(async (sql) => {
    await upsertWebhook(sql, organisationId, secret, clock.now())
    await recordAudit(sql, clock, actor, { organisationId, action: 'webhook.secret_set', subject: org })
  }, permitRequestOf(actor))
  return { org, path: pathOf(org), secret }
}

/** What is known of an organisation's webhook, without its secret. */
export async function showWebhook(db: Db, { org, organisationId }: { org: string; organisationId: number }) {
  const state = await selectWebhookState(db.sql, organisationId)
  const { createdAt = null, at, event, outcome } = state ?? {}
  return {
    org,
    path: pathOf(org),
    secret_created_at: createdAt,
    last_delivery:
      at && event !== undefined && outcome
        ? { received_at: at, event, outcome, message: (event === 'ping' ? pingResult : resultOf(outcome)).message }
        : null,
  }
}

const pathOf = (org: string): string => `/webhooks/github/${org}`

/** Rejects a malformed signature before the body is read. */
export function parseSignature(header: string | null): string {
  if (header === null || !wellFormedSignature.test(header)) throw unauthorized()
  return header
}

/** Finds the organisation's webhook. A missing one is rejected like a wrong signature. */
export async function requireWebhook(db: Db, org: string): Promise<Webhook> {
  const webhook = wellFormedOrganisation.test(org) ? await findWebhook(db.sql, org) : undefined
  if (!webhook) throw unauthorized()
  // With another organisation's row, a delivery would be written to that organisation's histories.
  if (webhook.org !== org) throw new Error('response does not match request')
  return webhook
}

/** Rejects a body that was not signed with the secret. Compares in constant time. */
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
