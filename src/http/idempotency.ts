import { createHash } from 'node:crypto'
import { parseIdempotencyKey } from '../lib/idempotency_key.ts'
import type { IdempotentRequest } from '../requests/store.ts'
import type { Exchange } from './exchange.ts'

/** The request's Idempotency-Key, which stands for one route and body within an organisation; null without one. */
export function parseIdempotentRequest(
  { request: { method, url, headers } }: Exchange,
  organisationId: number,
  body: string,
): IdempotentRequest | null {
  const key = parseIdempotencyKey(headers.get('idempotency-key'))
  if (key === null) return null
  const fingerprint = createHash('sha256').update(`${method} ${url}\n${body}`).digest()
  return { organisationId, key, fingerprint }
}

/** 201 with what was made, now or by an earlier request with the same Idempotency-Key. */
export const replyCreated = (exchange: Exchange, { answer, isReplayed }: { answer: object; isReplayed: boolean }) =>
  exchange.reply(201, JSON.stringify({ data: answer }), isReplayed ? { 'idempotent-replayed': 'true' } : {})
