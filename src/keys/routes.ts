import { Elysia } from 'elysia'
import { keyHolder } from '../audit/record.ts'
import type { Sql } from '../db/client.ts'
import type { Services } from '../deps.ts'
import { ServiceError } from '../errors.ts'
import { parseJson, readJsonText } from '../http/body.ts'
import { describeOperations } from '../http/describe.ts'
import { readIdempotentRequest, replyCreated } from '../http/idempotency.ts'
import type { RouteWrapper } from '../http/middleware.ts'
import { describePage, pageRequestOf, replyPage } from '../http/paging.ts'
import { visibleTo } from '../http/request_context.ts'
import { changeOnce } from '../idempotency/replay.ts'
import { readOrganisation } from '../orgs/manage.ts'
import { parseNewKey, toKeyChange, validateKeyChange } from './given.ts'
import { changeKey, createKeyInTransaction, listKeys, revokeKey, rotateKeyInTransaction, showKey } from './manage.ts'
import {
  ApiKeyChange,
  ApiKeyList,
  ChangedApiKey,
  CreatedApiKey,
  KeyPath,
  keyRotation,
  NewApiKey,
  type NewKey,
  OwnApiKey,
  RotatedApiKey,
  rotationAlwaysShows,
  ShownApiKey,
} from './schema.ts'

type KeyParams = { key_id: string }

const shown = { status: 200, description: 'The key without its text.', schema: ShownApiKey }
const changed = {
  status: 200,
  description: 'The key without its text. Without the scope keys:read, only its id and what was changed.',
  schema: ChangedApiKey,
}
const created = {
  status: 201,
  description: 'The key with its text, which is shown only here.',
  schema: CreatedApiKey,
}

const invalidKey = {
  message: 'The key is not valid.',
  example: { details: [{ path: '/name', message: 'must be given' }] },
}

const operations = describeOperations('Keys', {
  listKeys: {
    summary: 'List API keys',
    description: 'Returns the keys of the organisation, newest first, including revoked and expired ones.',
    ...describePage('A page of keys.', ApiKeyList),
  },
  createKey: {
    summary: 'Create an API key',
    description:
      'Creates a key with the given scopes or those of a preset. A key cannot grant a scope that it lacks (403), nor a ' +
      'longer life than its own (422). A retry does not show the text again: if the first answer was lost, rotate the ' +
      'key in the replayed one.',
    isIdempotent: true,
    body: NewApiKey,
    success: created,
    invalid: invalidKey,
  },
  getKey: {
    summary: 'Show an API key',
    description: 'Returns a key without its text.',
    path: KeyPath,
    success: shown,
  },
  changeKey: {
    summary: 'Change an API key',
    description: 'Changes the given properties of a key.',
    path: KeyPath,
    body: ApiKeyChange,
    success: changed,
    invalid: invalidKey,
  },
  revokeKey: {
    summary: 'Revoke an API key',
    description: 'Revokes a key: it is rejected everywhere within a second. Revoking it again changes nothing.',
    path: KeyPath,
    success: changed,
  },
  rotateKey: {
    summary: 'Rotate an API key',
    description:
      'Creates a key with the name, the scopes, the lifetime and the limits of this one, which works until the overlap ends.',
    path: KeyPath,
    ...keyRotation.described,
    success: { ...created, schema: RotatedApiKey },
  },
  getOwnKey: {
    summary: 'Show the key of this request',
    description:
      'Returns the key used for this request and its organisation. It needs no scope. A browser key gets 403.',
    success: { ...shown, schema: OwnApiKey },
  },
})

export const keyRoutes = ({ db, clock }: Services, { authenticated }: RouteWrapper) =>
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
        const { body, request } = await readIdempotentRequest(context, caller.organisationId, parseNewKey)
        const make = (sql: Sql) => createKeyInTransaction(sql, clock, caller, body, keyHolder(caller, context))
        return replyCreated(context, await changeOnce(db, clock, request, make, withoutText))
      }),
      { detail: operations.createKey },
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
        const given = validateKeyChange(parseJson(await readJsonText(context)))
        const key = await changeKey(db, clock, id, toKeyChange(given), keyHolder(caller, context))
        return context.replyData(visibleTo(caller, 'keys:read', key, ['id', ...Object.keys(given)]))
      }),
      { detail: operations.changeKey },
    )
    .delete(
      '/api/v1/keys/:key_id',
      authenticated('keys:write', async (context, { key_id: id }: KeyParams, caller) => {
        const key = await revokeKey(db, clock, id, keyHolder(caller, context))
        return context.replyData(visibleTo(caller, 'keys:read', key, ['id', 'revoked_at']))
      }),
      { detail: operations.revokeKey },
    )
    .post(
      '/api/v1/keys/:key_id/rotate',
      authenticated('keys:write', async (context, { key_id: id }: KeyParams, caller) => {
        await showKey(db, id, caller)
        const { body: overlapMs, request } = await readIdempotentRequest(
          context,
          caller.organisationId,
          keyRotation.parse,
        )
        const rotate = (sql: Sql) => rotateKeyInTransaction(sql, clock, id, overlapMs, keyHolder(caller, context))
        const { answer, isReplayed } = await changeOnce(db, clock, request, rotate, withoutText)
        return replyCreated(context, {
          answer: visibleTo(caller, 'keys:read', answer, rotationAlwaysShows),
          isReplayed,
        })
      }),
      { detail: operations.rotateKey },
    )
    .get(
      '/api/v1/key',
      authenticated(null, async (context, _: object, caller) => {
        // Anyone who opens a page can read its key, and must learn nothing about the organisation.
        if (caller.browser) throw new ServiceError('forbidden', 'A browser key may only record signals.')
        const [key, organisation] = await Promise.all([
          showKey(db, caller.key, caller),
          readOrganisation(db, clock, caller.organisationId),
        ])
        const { id, name, plan, monthly_limit: limit, used, resets_at } = organisation
        const usage = caller.scopes.includes('usage:read') ? { used, limit, resets_at } : null
        return context.replyData({ ...key, organisation: { id, name, plan }, usage })
      }),
      { detail: operations.getOwnKey },
    )

const withoutText = (key: NewKey) => ({ ...key, key: null })
