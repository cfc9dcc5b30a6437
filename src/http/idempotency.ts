import { hash } from 'node:crypto'
import { parseIdempotencyKey } from '../lib/idempotency_key.ts'
import type { IdempotentRequest } from '../requests/store.ts'
import { parseJson, readJsonText } from './body.ts'
import type { Exchange } from './exchange.ts'

/** Reads the body of a request that may have an Idempotency-Key, which stands for one route and body of an organisation. */
export async function readIdempotentRequest<Body>(
  exchange: Exchange,
  organisationId: number,
  validate: (value: unknown) => Body,
): Promise<{ body: Body; request: IdempotentRequest }> {
  const { method, url, headers } = exchange.request
  const text = await readJsonText(exchange)
  const body = validate(parseJson(text))
  const key = parseIdempotencyKey(headers.get('idempotency-key'))
  // The host is left out, because a retry may reach another replica, or come by another name.
  const path = url.replace(/^\w+:\/\/[^/]*/, '')
  const fingerprint = hash('sha256', `${method} ${path}\n${text}`, 'buffer')
  return { body, request: { organisationId, key, fingerprint, endsAt: exchange.endsAt } }
}

/** 201 with what was made, now or by an earlier request with the same Idempotency-Key. */
export const replyCreated = (exchange: Exchange, { answer, isReplayed }: { answer: object; isReplayed: boolean }) =>
  exchange.replyData(answer, 201, isReplayed ? { 'idempotent-replayed': 'true' } : {})
