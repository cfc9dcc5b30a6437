import { Elysia } from 'elysia'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import type { RouteWrapper } from '../http/answer.ts'
import { decodeText, parseJson, readBody, requireJson } from '../http/body.ts'

/** The most that GitHub sends. */
const maxBytes = 25 * 1024 * 1024

/** For GitHub alone, so it is not in the document; what it does is told in docs/github.md. */
export const githubRoutes = ({ db, clock }: { db: Db; clock: Clock }, { publicRoute }: RouteWrapper) =>
  new Elysia({ name: 'github' }).post(
    '/webhooks/github/:org_id',
    publicRoute(async (exchange, { org_id: org }: { org_id: string }) => {
      // Loaded with the first delivery: a service that starts has no need of it, and many never get one.
      const [{ requireSignature, requireWebhook, verifyDelivery }, { receiveDelivery }] = await Promise.all([
        import('./verify.ts'),
        import('./receive.ts'),
      ])
      const { headers } = exchange.request
      const signature = requireSignature(headers.get('x-hub-signature-256'))
      // Before the body, which is large: only whoever knows a webhook can make the service keep one.
      const { organisationId, secret } = await requireWebhook(db, org)
      const bytes = await readBody(exchange, maxBytes, (all) => all)
      await verifyDelivery(secret, bytes, signature)
      exchange.caller = { org }
      const delivery = {
        event: headers.get('x-github-event') ?? '',
        id: headers.get('x-github-delivery') ?? '',
        payload: readPayload(exchange.request, bytes),
      }
      const recorded = await receiveDelivery(db, clock, organisationId, delivery)
      return exchange.reply(200, JSON.stringify({ data: { recorded } }))
    }),
    // The body is read by the handler: the signature is over its very bytes.
    { parse: 'none' },
  )

/** GitHub sends JSON, or, where the webhook is set so, a form with the JSON in it. */
function readPayload(request: Request, bytes: Uint8Array): unknown {
  const text = decodeText(bytes)
  if (/^\s*application\/x-www-form-urlencoded\s*(;|$)/i.test(request.headers.get('content-type') ?? '')) {
    return parseJson(new URLSearchParams(text).get('payload') ?? '')
  }
  requireJson(request)
  return parseJson(text)
}
