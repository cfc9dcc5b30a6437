import { hash } from 'node:crypto'
import { parseJson, readJsonText } from './body.ts'
import type { RequestContext } from './request_context.ts'

/** A request that may be retried, unless its key is null. It gets an error at `deadline`. */
export type IdempotentRequest = { organisationId: number; key: string | null; fingerprint: Buffer; deadline: number }

/** Reads the body of a request that may have an Idempotency-Key. The key is bound to the route, the body and the organisation. */
export async function readIdempotentRequest<Body>(
  context: RequestContext,
  organisationId: number,
  validate: (value: unknown) => Body,
): Promise<{ body: Body; request: IdempotentRequest }> {
  const { method, url } = context.request
  const text = await readJsonText(context)
  const body = validate(parseJson(text))
  const key = context.idempotencyKey
  // Without the host: a retry may use another name of the service.
  const path = url.replace(/^\w+:\/\/[^/]*/, '')
  const fingerprint = hash('sha256', `${method} ${path}\n${text}`, 'buffer')
  return { body, request: { organisationId, key, fingerprint, deadline: context.deadline } }
}

/** Replies with 201 and what was created, now or by an earlier request with the same Idempotency-Key. */
export const replyCreated = (
  context: RequestContext,
  { answer, isReplayed }: { answer: object; isReplayed: boolean },
) => context.replyData(answer, 201, isReplayed ? { 'idempotent-replayed': 'true' } : {})
