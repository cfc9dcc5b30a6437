import { createHash } from 'node:crypto'
import { parseIdempotencyKey } from '../lib/idempotency_key.ts'
import type { IdempotentRequest } from '../requests/store.ts'
import type { Exchange } from './exchange.ts'

/** The request with its Idempotency-Key, which stands for one route and body within an organisation. */
export function parseIdempotentRequest(
  { request: { method, url, headers } }: Exchange,
  organisationId: number,
  body: string,
): IdempotentRequest {
  const key = parseIdempotencyKey(headers.get('idempotency-key'))
  // Without the host, because a retry may reach another replica, or come by another name.
  const path = url.replace(/^\w+:\/\/[^/]*/, '')
  const fingerprint = createHash('sha256').update(`${method} ${path}\n${body}`).digest()
  return { organisationId, key, fingerprint }
}

/** 201 with what was made, now or by an earlier request with the same Idempotency-Key. */
export const replyCreated = (exchange: Exchange, { answer, isReplayed }: { answer: object; isReplayed: boolean }) =>
  exchange.reply(201, JSON.stringify({ data: answer }), isReplayed ? { 'idempotent-replayed': 'true' } : {})
