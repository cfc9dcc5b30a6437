import { createHash } from 'node:crypto'
import { readIdempotencyKey } from '../lib/idempotency_key.ts'
import type { IdempotentRequest } from '../requests/store.ts'
import type { Exchange } from './exchange.ts'

/** The request's Idempotency-Key, which stands for one route and body within an organisation; null without one. */
export function readIdempotentRequest(
  { request: { method, url, headers } }: Exchange,
  organisationId: number,
  body: string,
): IdempotentRequest | null {
  const key = readIdempotencyKey(headers.get('idempotency-key'))
  if (key === null) return null
  // Without the host, because a retry may reach another replica, or come by another name.
  const path = url.replace(/^\w+:\/\/[^/]*/, '')
  const fingerprint = createHash('sha256').update(`${method} ${path}\n${body}`).digest()
  return { organisationId, key, fingerprint }
}

/** 201 with what was made, now or by an earlier request with the same Idempotency-Key. */
export const replyCreated = (exchange: Exchange, { answer, isReplayed }: { answer: object; isReplayed: boolean }) =>
  exchange.reply(201, JSON.stringify({ data: answer }), isReplayed ? { 'idempotent-replayed': 'true' } : {})
