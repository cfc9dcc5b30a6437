import { Elysia } from 'elysia'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { decodeText, parseJson, readBytes, requireJson } from '../http/body.ts'
import { createDeadline } from '../http/deadline.ts'
import { receiveDelivery } from './receive.ts'
import { requireSignature, verifyDelivery } from './verify.ts'

/** The most that GitHub sends. */
const maxBytes = 25 * 1024 * 1024

/** For GitHub alone, so it is not in the document; what it does is told in docs/github.md. */
export const githubRoutes = ({ db, clock }: { db: Db; clock: Clock }) =>
  new Elysia({ name: 'github' }).post(
    '/webhooks/github/:org_id',
    async ({ params, request }) => {
      const { headers } = request
      const signature = requireSignature(headers.get('x-hub-signature-256'))
      const bytes = await readBytes(request, maxBytes)
      const inTime = createDeadline()
      const organisationId = await inTime(verifyDelivery(db, params.org_id, bytes, signature))
      const delivery = {
        event: headers.get('x-github-event') ?? '',
        id: headers.get('x-github-delivery') ?? '',
        payload: readPayload(request, bytes),
      }
      return { data: { recorded: await inTime(receiveDelivery(db, clock, organisationId, delivery)) } }
    },
    // The body is read by the handler: the signature is over its very bytes.
    { parse: 'none', detail: { hide: true } },
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
