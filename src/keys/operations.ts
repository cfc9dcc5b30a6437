import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import { defineOperations, operation } from '../http/operation.ts'
import { pageAnswer } from '../http/paging.ts'
import { cursorParams } from '../lib/cursor_page.ts'
import { readOrganisation } from '../orgs/manage.ts'
import { keyChangeBody, newKeyBody } from './given.ts'
import { changeKey, createKey, listKeys, revokeKey, rotateKey, showKey } from './manage.ts'
import { ApiKeyList, CreatedApiKey, KeyPath, keyRotation, OwnApiKey, ShownApiKey } from './schema.ts'

type Needs = { db: Db; clock: Clock }

const shown = { status: 200, description: 'The key without its text.', schema: ShownApiKey }
const created = { status: 201, description: 'The key with its text, which is shown only here.', schema: CreatedApiKey }

export const keyOperations = defineOperations('Keys', {
  listKeys: operation({
    method: 'GET',
    path: '/keys',
    scope: 'keys:read',
    summary: 'List API keys',
    description: 'Returns the keys of the organisation, newest first, including revoked and expired ones.',
    query: cursorParams,
    answer: pageAnswer('A page of keys.', ApiKeyList),
    run: ({ db }: Needs, { query, caller }) => listKeys(db, caller.organisationId, query),
  }),
  createKey: operation({
    method: 'POST',
    path: '/keys',
    scope: 'keys:write',
    summary: 'Create an API key',
    description:
      'Creates a key with the given scopes or those of a preset. A key cannot grant a scope that it lacks (403), nor a ' +
      'longer life than its own (422).',
    body: newKeyBody,
    answer: created,
    run: ({ db, clock }: Needs, { body, caller, actor }) => createKey(db, clock, caller, body, actor),
  }),
  getKey: operation({
    method: 'GET',
    path: '/keys/:key_id',
    scope: 'keys:read',
    summary: 'Show an API key',
    description: 'Returns a key without its text.',
    params: KeyPath,
    answer: shown,
    run: ({ db }: Needs, { params, caller }) => showKey(db, params.key_id, caller),
  }),
  changeKey: operation({
    method: 'PATCH',
    path: '/keys/:key_id',
    scope: 'keys:write',
    summary: 'Change an API key',
    description: 'Changes the given properties of a key.',
    params: KeyPath,
    body: keyChangeBody,
    answer: shown,
    find: ({ db }: Needs, { params, caller }) => showKey(db, params.key_id, caller),
    run: ({ db, clock }: Needs, { params, body, actor }) => changeKey(db, clock, params.key_id, body, actor),
  }),
  revokeKey: operation({
    method: 'DELETE',
    path: '/keys/:key_id',
    scope: 'keys:write',
    summary: 'Revoke an API key',
    description: 'Revokes a key: it is rejected everywhere within a second. Revoking it again changes nothing.',
    params: KeyPath,
    answer: shown,
    run: ({ db, clock }: Needs, { params, actor }) => revokeKey(db, clock, params.key_id, actor),
  }),
  rotateKey: operation({
    method: 'POST',
    path: '/keys/:key_id/rotate',
    scope: 'keys:write',
    summary: 'Rotate an API key',
    description:
      'Creates a key with the name, the scopes, the lifetime and the limits of this one, which works until the overlap ends.',
    params: KeyPath,
    body: keyRotation,
    answer: created,
    find: ({ db }: Needs, { params, caller }) => showKey(db, params.key_id, caller),
    run: ({ db, clock }: Needs, { params, body: overlapMs, actor }) =>
      rotateKey(db, clock, params.key_id, overlapMs, actor),
  }),
  getOwnKey: operation({
    method: 'GET',
    path: '/key',
    scope: null,
    summary: 'Show the key of this request',
    description:
      'Returns the key used for this request and its organisation. It needs no scope. A browser key gets 403.',
    answer: { ...shown, schema: OwnApiKey },
    async run({ db, clock }: Needs, { caller }) {
      // Anyone who opens a page can read its key, and must learn nothing about the organisation.
      if (caller.browser) throw new ServiceError('forbidden', 'A browser key may only record signals.')
      const [key, organisation] = await Promise.all([
        showKey(db, caller.key, caller),
        readOrganisation(db, clock, caller.organisationId),
      ])
      const { id, name, plan, monthly_limit: limit, used, resets_at } = organisation
      const usage = caller.scopes.includes('usage:read') ? { used, limit, resets_at } : null
      return { ...key, organisation: { id, name, plan }, usage }
    },
  }),
})
