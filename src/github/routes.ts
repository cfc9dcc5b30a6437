import { Elysia } from 'elysia'
import { keyHolder } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { invalid, unavailable } from '../errors.ts'
import { createInFlightLimiter, decodeInTurn, mebibyte, parseJson, readBody, requireJson } from '../http/body.ts'
import { describeOperations } from '../http/describe.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { type GithubObserver, GithubWebhook, ShownGithubWebhook } from './schema.ts'
import { setWebhook, showWebhook } from './settings.ts'
import { updateLastEvent } from './store.ts'

/** The largest payload that GitHub sends. */
const maxBytes = 25 * mebibyte

const operations = describeOperations('Webhooks', {
  setGithubWebhook: {
    summary: 'Set the secret of the GitHub webhook',
    description:
      "Creates the secret of the organisation's webhook. It is shown only once and replaces an earlier one immediately. " +
      'If the response was lost, send the request again. `path` is where GitHub delivers to.',
    success: { status: 200, description: 'The webhook, with its secret.', schema: GithubWebhook },
  },
  getGithubWebhook: {
    summary: 'Show the GitHub webhook',
    description: 'Returns whether there is a secret, since when, and the last event with its outcome.',
    success: { status: 200, description: 'The webhook, without its secret.', schema: ShownGithubWebhook },
  },
})

export const githubSettingsRoutes = ({ db, clock }: { db: Db; clock: Clock }, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'github settings' })
    .get(
      '/api/v1/webhooks/github',
      authenticated('webhooks:write', async (context, _: object, caller) =>
        context.replyData(await showWebhook(db, caller)),
      ),
      { detail: operations.getGithubWebhook },
    )
    .put(
      '/api/v1/webhooks/github',
      authenticated('webhooks:write', async (context, _: object, caller) =>
        context.replyData(await setWebhook(db, clock, caller.org, keyHolder(caller, context))),
      ),
      { detail: operations.setGithubWebhook },
    )

/** Receives events. Only GitHub calls it, so it is not in the OpenAPI document; see docs/git.md. */
export function githubEventRoutes(
  { db, clock, githubObserver }: { db: Db; clock: Clock; githubObserver: GithubObserver },
  { publicRoute }: RouteWrapper,
) {
  const inFlight = createEventLimiter()
  const receive = publicRoute(async (context, { org_id: org }: { org_id: string }) => {
    // Loaded with the first event, because many services never get one.
    const { parseSignature, receiveEvent, requireWebhook, verifySignature } = await import('./receive.ts')
    const { headers } = context.request
    const signature = parseSignature(headers.get('x-hub-signature-256'))
    const { organisationId, secret } = await requireWebhook(db, org)
    return inFlight.run(organisationId, async (reserve) => {
      const body = await readBody(context, maxBytes, (bytes) => bytes, reserve)
      await verifySignature(secret, body, signature)
      const payload = parsePayload(context.request, await decodeInTurn(body))
      context.caller = { org }
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
  })
  // The handler reads the body, because the signature covers its exact bytes.
  return new Elysia({ name: 'github events' }).post('/webhooks/github/:org_id', receive)
}

/** Bounds the bodies in memory, because a signature can be checked only at the end. The largest body fits. */
export const createEventLimiter = () =>
  createInFlightLimiter({
    perTenant: { requests: 128, bytes: 32 * mebibyte },
    inAll: { requests: 512, bytes: 128 * mebibyte },
    rejectWith: () => unavailable('overload', 'Too many events are in flight. Send this one again shortly.'),
  })

/** GitHub sends JSON, or a form that contains it: the webhook's setting decides. */
function parsePayload(request: Request, text: string): unknown {
  if (/^\s*application\/x-www-form-urlencoded\s*(;|$)/i.test(request.headers.get('content-type') ?? '')) {
    // Only this parameter is parsed: a form of 25 MiB may have millions, which would take a gigabyte of memory.
    const [payload = ''] = /(?<=^|&)payload=[^&]*/.exec(text) ?? []
    return parseBounded(new URLSearchParams(payload).get('payload') ?? '')
  }
  requireJson(request)
  return parseBounded(text)
}

/** Each takes about a hundred bytes of memory, however short it is: 25 MiB of empty lists would take a gigabyte. */
const maxContainers = mebibyte

/** Parses JSON of at most a million lists and objects. Brackets in strings do not count. */
export function parseBounded(text: string): unknown {
  if (text.length > maxContainers && countContainers(text) > maxContainers) {
    throw invalid('The request body is not valid.', [{ path: '', message: 'must have fewer lists and objects' }])
  }
  return parseJson(text)
}

const [quote, openList, backslash, openObject] = [0x22, 0x5b, 0x5c, 0x7b]

function countContainers(text: string): number {
  let containers = 0
  let isInString = false
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at)
    if (code === quote) isInString = !isInString
    else if (code === backslash) at += 1
    else if (!isInString && (code === openList || code === openObject)) containers += 1
  }
  return containers
}
