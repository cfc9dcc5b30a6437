import { Elysia } from 'elysia'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { decodeInTurn, mebibyte, readBody, requireJson } from '../http/body.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { parseJson } from '../lib/json.ts'
import type { GithubObserver } from './schema.ts'
import { updateLastEvent } from './store_webhook.ts'

/** GitHub sends up to 25 MiB, but the event loop would stand still while they are parsed. Sync brings what is larger. */
const maxBytes = 5 * mebibyte

/** Receives events. Only GitHub calls it, so it is not in the OpenAPI document; see docs/git.md. */
export function githubEventRoutes(
  { db, clock, githubObserver }: { db: Db; clock: Clock; githubObserver: GithubObserver },
  { publicRoute }: RouteWrapper,
) {
  const receive = publicRoute(async (context, { org_id: org }: { org_id: string }) => {
    // Loaded with the first event, because many services never get one.
    const { parseSignature, receiveEvent, requireWebhook, verifySignature } = await import('./receive.ts')
    const { headers } = context.request
    const signature = parseSignature(headers.get('x-hub-signature-256'))
    const { organisationId, secret } = await requireWebhook(db, org)
    // Names the tenant whose share of the memory the body takes.
    context.caller = { org }
    const body = await readBody(context, maxBytes, (bytes) => bytes)
    await verifySignature(secret, body, signature)
    const payload = parsePayload(context.request, await decodeInTurn(body))
    const received = {
      event: headers.get('x-github-event') ?? '',
      id: headers.get('x-github-delivery') ?? '',
      signature,
      payload,
    }
    const result = await receiveEvent(db, clock, organisationId, received, context.deadline)
    // After the commit. If it fails, the event is answered as repeated when GitHub sends it again.
    await updateLastEvent(db.sql, organisationId, {
      at: clock.now(),
      event: received.event.slice(0, 100),
      outcome: result.outcome,
    })
    githubObserver.ended(result, org)
    return context.replyData(result)
  })
  // The handler reads the body, because the signature covers its exact bytes.
  return new Elysia({ name: 'github events' }).post('/webhooks/github/:org_id', receive)
}

/** GitHub sends JSON, or a form that contains it: the webhook's setting decides. */
function parsePayload(request: Request, text: string): unknown {
  if (/^\s*application\/x-www-form-urlencoded\s*(;|$)/i.test(request.headers.get('content-type') ?? '')) {
    // Only this parameter is parsed: a form may have millions, which would take a gigabyte of memory.
    const [payload = ''] = /(?<=^|&)payload=[^&]*/.exec(text) ?? []
    return parseJson(new URLSearchParams(payload).get('payload') ?? '')
  }
  requireJson(request)
  return parseJson(text)
}
