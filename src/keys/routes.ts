import { Elysia } from 'elysia'
import { keyHolder } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { invalid, ServiceError } from '../errors.ts'
import { parseJson, readByHandler, readJsonText } from '../http/body.ts'
import type { Caller } from '../http/caller.ts'
import { describeOperations } from '../http/describe.ts'
import { readIdempotentRequest, replyCreated } from '../http/idempotency.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { describePage, pageRequestOf, replyPage } from '../http/paging.ts'
import { changeOnce } from '../idempotency/replay.ts'
import { parseInstant } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import { listOrganisations } from '../orgs/manage.ts'
import { addKey, changeKey, listKeys, replaceKey, revokeKey, showKey } from './manage.ts'
import {
  ApiKeyChange,
  ApiKeyList,
  CreatedApiKey,
  KeyPath,
  KeyRotation,
  NewApiKey,
  type NewKey,
  OwnApiKey,
  ShownApiKey,
} from './schema.ts'
import { parseScopes, presets } from './scopes.ts'

type KeyParams = { key_id: string }

const shown = { status: 200, description: 'The key, without its text.', schema: ShownApiKey }
const created = {
  status: 201,
  description: 'The key, with its text this once.',
  schema: CreatedApiKey,
  sometimes: ['Idempotent-Replayed' as const],
}

const invalidKey = {
  message: 'The key is not valid.',
  example: { details: [{ path: '/name', message: 'must be given' }] },
}

const operations = describeOperations('Keys', {
  listKeys: {
    summary: 'List API keys',
    description: 'The keys of the organisation, newest first, also those that have ended.',
    ...describePage('A page of keys.', ApiKeyList),
  },
  createKey: {
    summary: 'Make an API key',
    description:
      'Makes a key with the scopes given, or those of a preset. The preset browser needs the origins of the pages that ' +
      'its key is for. Nobody can grant a scope that their own key lacks (403). ' +
      'A retry with the same Idempotency-Key makes no second key, and does not show the text again: if the first answer ' +
      'was lost, rotate the key that the replayed one names.',
    isIdempotent: true,
    body: NewApiKey,
    success: created,
    invalid: invalidKey,
  },
  getKey: {
    summary: 'Show an API key',
    description: 'What is known of a key, without its text.',
    path: KeyPath,
    success: shown,
  },
  changeKey: {
    summary: 'Change an API key',
    description: 'Changes what is given of a key, and leaves the rest.',
    path: KeyPath,
    body: ApiKeyChange,
    success: shown,
    invalid: invalidKey,
  },
  revokeKey: {
    summary: 'Revoke an API key',
    description: 'Ends a key: it is rejected everywhere within a second. Repeated, it changes nothing.',
    path: KeyPath,
    success: shown,
  },
  rotateKey: {
    summary: 'Rotate an API key',
    description:
      'Makes a key with the name, the scopes and the limits of this one, which goes on working until the overlap ends. A key that ' +
      'expires is replaced by one that lives as long, and a browser key by one that goes on with its monthly count.',
    path: KeyPath,
    isIdempotent: true,
    body: KeyRotation,
    success: created,
    invalid: {
      message: 'The rotation is not valid.',
      example: { details: [{ path: '/overlap_seconds', message: 'must be an integer' }] },
    },
  },
  getOwnKey: {
    summary: 'Show the key of this request',
    description:
      'What the key that is sent may do, until when, and for which organisation: for a program that has been given a key. ' +
      'It needs no scope; what the organisation has used of its month is shown to a key with usage:read. A browser key is ' +
      'shown nothing.',
    success: { ...shown, schema: OwnApiKey },
  },
})

const validateNew = createValidator(NewApiKey, 'The key')
const validateChange = createValidator(ApiKeyChange, 'The change')
const validateRotation = createValidator(KeyRotation, 'The rotation')

export const keyRoutes = ({ db, clock }: { db: Db; clock: Clock }, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'keys' })
    .get(
      '/api/v1/keys',
      authenticated('keys:read', async (context, _: object, { organisationId }) =>
        replyPage(context, await listKeys(db, organisationId, pageRequestOf(context))),
      ),
      { detail: operations.listKeys },
    )
    .post(
      '/api/v1/keys',
      authenticated('keys:write', async (context, _: object, caller) => {
        const { body, request } = await readIdempotentRequest(context, caller.organisationId, validateNew)
        const { expiresAt = null, ...given } = parseChange(body)
        const key = { ...given, name: body.name, expiresAt }
        const make = (sql: Sql) => addKey(sql, clock, caller, key, keyHolder(caller, context))
        return replyCreated(context, await changeOnce(db, clock, request, make, withoutText))
      }),
      { ...readByHandler, detail: operations.createKey },
    )
    .get(
      '/api/v1/keys/:key_id',
      authenticated('keys:read', async (context, { key_id: id }: KeyParams, caller) =>
        context.replyData(await showKey(db, id, caller)),
      ),
      { detail: operations.getKey },
    )
    .patch(
      '/api/v1/keys/:key_id',
      authenticated('keys:write', async (context, { key_id: id }: KeyParams, caller) => {
        await showKey(db, id, caller)
        const change = parseChange(validateChange(parseJson(await readJsonText(context))))
        return context.replyData(await changeKey(db, clock, id, change, keyHolder(caller, context)))
      }),
      { ...readByHandler, detail: operations.changeKey },
    )
    .delete(
      '/api/v1/keys/:key_id',
      authenticated('keys:write', async (context, { key_id: id }: KeyParams, caller) =>
        context.replyData(await revokeKey(db, clock, id, keyHolder(caller, context))),
      ),
      { detail: operations.revokeKey },
    )
    .post(
      '/api/v1/keys/:key_id/rotate',
      authenticated('keys:write', async (context, { key_id: id }: KeyParams, caller) => {
        await showKey(db, id, caller)
        const { body, request } = await readIdempotentRequest(context, caller.organisationId, validateRotation)
        const { overlap_seconds: seconds = 86_400 } = body
        const rotate = (sql: Sql) => replaceKey(sql, clock, id, seconds * 1_000, keyHolder(caller, context))
        return replyCreated(context, await changeOnce(db, clock, request, rotate, withoutText))
      }),
      { ...readByHandler, detail: operations.rotateKey },
    )
    .get(
      '/api/v1/key',
      authenticated(null, async (context, _: object, caller) => {
        // Anybody who opens a page can read its key, and is to learn nothing of the organisation by it.
        if (caller.browser) throw new ServiceError('forbidden', 'A browser key records signals, and nothing else.')
        return context.replyData(await describeCaller(db, clock, caller))
      }),
      { detail: operations.getOwnKey },
    )

const withoutText = (key: NewKey) => ({ ...key, key: null })

/** What is given of a key, with each scope, origin and prompt once; the rest is undefined. */
function parseChange({ name, scopes, preset, expires_at, origins, prompts, monthly_limit }: ApiKeyChange) {
  const expiresAt = parseExpiry(expires_at)
  if (preset === 'browser' && !origins) throw wrong('/origins', 'must be given with the preset browser')
  if (preset && scopes) throw wrong('/preset', 'must be absent when scopes are given')
  return {
    name,
    scopes: preset ? presets[preset] : scopes && parseScopes(scopes),
    expiresAt,
    origins: origins && [...new Set(origins)],
    prompts: prompts && [...new Set(prompts)],
    monthly_limit,
  }
}

/** Undefined when it is not given, null for a key that does not expire. */
function parseExpiry(text: string | null | undefined): Date | null | undefined {
  if (text === undefined || text === null) return text
  const instant = parseInstant(text)
  if (!instant) throw wrong('/expires_at', 'must be an ISO 8601 time with its zone, as 2026-11-14T23:35:00Z')
  return instant
}

const wrong = (path: string, message: string) => invalid('The key is not valid.', [{ path, message }])

async function describeCaller(db: Db, clock: Clock, caller: Caller) {
  const [key, [organisation]] = await Promise.all([
    showKey(db, caller.key, caller),
    listOrganisations(db, clock, caller.org),
  ])
  const { id, name, plan, monthly_limit: limit, used, resets_at } = organisation as NonNullable<typeof organisation>
  const usage = caller.scopes.includes('usage:read') ? { used, limit, resets_at } : null
  return { ...key, organisation: { id, name, plan }, usage }
}
