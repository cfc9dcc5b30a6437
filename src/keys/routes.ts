import { Elysia } from 'elysia'
import { keyHolder } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { invalid } from '../errors.ts'
import type { RouteWrapper } from '../http/answer.ts'
import { parseJson, readByHandler, readJsonText } from '../http/body.ts'
import { describeOperation } from '../http/describe.ts'
import { parseIdempotentRequest, replyCreated } from '../http/idempotency.ts'
import { invalidCursor, replyPage, searchOf } from '../http/paging.ts'
import { PageQuery, parsePageRequest } from '../lib/cursor_page.ts'
import { parseInstant } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import { changeOnce } from '../requests/replay.ts'
import { addKey, changeKey, listKeys, type NewKey, replaceKey, revokeKey, showKey } from './manage.ts'
import { type KeyRestrictions, unrestricted } from './restrictions.ts'
import {
  ApiKeyChange,
  ApiKeyList,
  CreatedApiKey,
  KeyPath,
  KeyRotation,
  NewApiKey,
  type Preset,
  type Scope,
  ShownApiKey,
} from './schema.ts'
import { parseScopes, presets } from './scopes.ts'

type KeyParams = { key_id: string }
type GivenRestrictions = Partial<KeyRestrictions> & { preset?: Preset }

const tag = 'Keys'
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

const listing = describeOperation({
  id: 'listKeys',
  tag,
  summary: 'List API keys',
  description: 'The keys of the organisation, newest first, also those that have ended.',
  query: PageQuery,
  success: { status: 200, description: 'A page of keys.', schema: ApiKeyList, sometimes: ['Link'] },
  errors: [401, 403, 422, 500],
  invalid: invalidCursor,
})

const creating = describeOperation({
  id: 'createKey',
  tag,
  summary: 'Make an API key',
  description:
    'Makes a key with the scopes given, or those of a preset. The preset browser needs the origins of the pages that ' +
    'its key is for. Nobody can grant a scope that their own key lacks (403). ' +
    'A retry with the same Idempotency-Key makes no second key, and does not show the text again: if the first answer ' +
    'was lost, rotate the key that the replayed one names.',
  isIdempotent: true,
  body: NewApiKey,
  success: created,
  errors: [401, 403, 422, 500],
  invalid: invalidKey,
})

const showing = describeOperation({
  id: 'getKey',
  tag,
  summary: 'Show an API key',
  description: 'What is known of a key, without its text.',
  path: KeyPath,
  success: shown,
  errors: [401, 403, 404, 500],
})

const changing = describeOperation({
  id: 'changeKey',
  tag,
  summary: 'Change an API key',
  description: 'Changes what is given of a key, and leaves the rest.',
  path: KeyPath,
  body: ApiKeyChange,
  success: shown,
  errors: [401, 403, 404, 422, 500],
  invalid: invalidKey,
})

const revoking = describeOperation({
  id: 'revokeKey',
  tag,
  summary: 'Revoke an API key',
  description: 'Ends a key: it is rejected everywhere within a second. Repeated, it changes nothing.',
  path: KeyPath,
  success: shown,
  errors: [401, 403, 404, 500],
})

const rotating = describeOperation({
  id: 'rotateKey',
  tag,
  summary: 'Rotate an API key',
  description:
    'Makes a key with the name, the scopes and the limits of this one, which goes on working until the overlap ends. A key that ' +
    'expires is replaced by one that lives as long.',
  path: KeyPath,
  isIdempotent: true,
  body: KeyRotation,
  success: created,
  errors: [401, 403, 404, 422, 500],
  invalid: {
    message: 'The rotation is not valid.',
    example: { details: [{ path: '/overlap_seconds', message: 'must be an integer' }] },
  },
})

const validateNew = createValidator(NewApiKey, 'The key')
const validateChange = createValidator(ApiKeyChange, 'The change')
const validateRotation = createValidator(KeyRotation, 'The rotation')

export const keyRoutes = ({ db, clock }: { db: Db; clock: Clock }, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'keys' })
    .get(
      '/api/v1/keys',
      authenticated('keys:read', async (exchange, _: object, { organisationId }) => {
        const request = parsePageRequest(searchOf(exchange.request))
        return replyPage(exchange, await listKeys(db, organisationId, request))
      }),
      { detail: listing },
    )
    .post(
      '/api/v1/keys',
      authenticated('keys:write', async (exchange, _: object, caller) => {
        const text = await readJsonText(exchange)
        const { name, ...given } = validateNew(parseJson(text))
        const expiresAt = parseExpiry(given.expires_at) ?? null
        const restrictions = { ...unrestricted, ...parseRestrictions(given) }
        const key = { name, scopes: parseScopeChoice(given), expiresAt, restrictions }
        const request = parseIdempotentRequest(exchange, caller.organisationId, text)
        const make = (sql: Sql): Promise<NewKey> => addKey(sql, clock, caller, key, keyHolder(caller))
        return replyCreated(exchange, await changeOnce(db, clock, request, make, withoutText))
      }),
      { ...readByHandler, detail: creating },
    )
    .get(
      '/api/v1/keys/:key_id',
      authenticated('keys:read', async (exchange, { key_id: id }: KeyParams, caller) =>
        exchange.reply(200, JSON.stringify({ data: await showKey(db, id, keyHolder(caller)) })),
      ),
      { detail: showing },
    )
    .patch(
      '/api/v1/keys/:key_id',
      authenticated('keys:write', async (exchange, { key_id: id }: KeyParams, caller) => {
        const actor = keyHolder(caller)
        await showKey(db, id, actor)
        const { name, ...given } = validateChange(parseJson(await readJsonText(exchange)))
        const change = {
          name,
          scopes: parseScopeChoice(given),
          expiresAt: parseExpiry(given.expires_at),
          restrictions: parseRestrictions(given),
        }
        return exchange.reply(200, JSON.stringify({ data: await changeKey(db, clock, id, change, actor) }))
      }),
      { ...readByHandler, detail: changing },
    )
    .delete(
      '/api/v1/keys/:key_id',
      authenticated('keys:write', async (exchange, { key_id: id }: KeyParams, caller) =>
        exchange.reply(200, JSON.stringify({ data: await revokeKey(db, clock, id, keyHolder(caller)) })),
      ),
      { detail: revoking },
    )
    .post(
      '/api/v1/keys/:key_id/rotate',
      authenticated('keys:write', async (exchange, { key_id: id }: KeyParams, caller) => {
        const actor = keyHolder(caller)
        await showKey(db, id, actor)
        const text = await readJsonText(exchange)
        const { overlap_seconds: seconds = 86_400 } = validateRotation(parseJson(text))
        const request = parseIdempotentRequest(exchange, caller.organisationId, text)
        const rotate = (sql: Sql): Promise<NewKey> => replaceKey(sql, clock, id, seconds * 1_000, actor)
        return replyCreated(exchange, await changeOnce(db, clock, request, rotate, withoutText))
      }),
      { ...readByHandler, detail: rotating },
    )

const withoutText = (key: NewKey): NewKey => ({ ...key, key: null })

function parseScopeChoice({ scopes, preset }: { scopes?: Scope[]; preset?: Preset }): Scope[] | undefined {
  if (scopes && preset) {
    throw invalid('The key is not valid.', [{ path: '/preset', message: 'must be absent when scopes are given' }])
  }
  return preset ? presets[preset] : scopes && parseScopes(scopes)
}

/** The restrictions that are given, with each origin and prompt once. */
function parseRestrictions({ preset, origins, prompts, monthly_limit }: GivenRestrictions): Partial<KeyRestrictions> {
  if (preset === 'browser' && !origins) {
    throw invalid('The key is not valid.', [{ path: '/origins', message: 'must be given with the preset browser' }])
  }
  return {
    ...(origins === undefined ? {} : { origins: once(origins) }),
    ...(prompts === undefined ? {} : { prompts: once(prompts) }),
    ...(monthly_limit === undefined ? {} : { monthly_limit }),
  }
}

const once = (texts: string[] | null): string[] | null => texts && [...new Set(texts)]

/** Undefined when it is not given, null for a key that does not expire. */
function parseExpiry(text: string | null | undefined): Date | null | undefined {
  if (text === undefined || text === null) return text
  const instant = parseInstant(text)
  if (instant) return instant
  throw invalid('The key is not valid.', [
    { path: '/expires_at', message: 'must be an ISO 8601 time with its zone, as 2026-11-14T23:35:00Z' },
  ])
}
