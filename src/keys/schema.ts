import { type Static, Type } from '@sinclair/typebox'
import { cursorPageOf } from '../lib/cursor_page.ts'
import { rotationBody } from '../lib/rotation.ts'
import { presets, scopes } from '../lib/scopes.ts'
import { maxTextLength } from '../lib/texts.ts'
import { envelopeOf, literals, nullable, type Row } from '../lib/typebox.ts'

const Scope = literals(scopes)

const time = Type.String({ format: 'date-time' })

/** What a browser key is restricted to; any other key has nulls. */
const KeyRestrictions = Type.Object({
  origins: nullable(
    Type.Array(Type.String(), { minItems: 1, maxItems: 100 }),
    'The origins whose pages may use a browser key, exact or such as https://*.example.com; null for any other key',
  ),
  prompts: nullable(
    Type.Array(Type.String(), { minItems: 1, maxItems: 100 }),
    'The prompts that a browser key is limited to; null for all',
  ),
  monthly_limit: nullable(
    Type.Integer({ minimum: 0, maximum: 2_147_483_647 }),
    "The signals a browser key may record in a month; null for no limit besides the organisation's",
  ),
})

const fields = {
  id: Type.String({ description: 'Public id of the key' }),
  name: Type.String(),
  prefix: Type.String({ description: 'The first characters of the key, to recognise it by' }),
  scopes: Type.Array(Scope, { description: 'What the key may do' }),
  created_at: time,
  expires_at: nullable(time, 'When it starts being rejected; null for never'),
  last_used_at: nullable(time, 'Accurate to a minute; null for never'),
  revoked_at: nullable(time, 'When it was revoked; null if it was not'),
  replaced_by: nullable(Type.String(), 'The key that it was rotated to'),
  ...KeyRestrictions.properties,
}

export const ApiKey = Type.Object(fields, { title: 'ApiKey' })

export type KeyRow = Row<typeof ApiKey>

const noRestrictions = { origins: null, prompts: null, monthly_limit: null }

const exampleKey = {
  id: 'key_8sQxVn2c1LrT0aZk',
  name: 'website',
  prefix: 'psk_4fGh7Kq9',
  scopes: ['history:read', 'signals:write'],
  created_at: '2026-11-14T23:35:00.000Z',
  expires_at: null,
  last_used_at: '2026-11-14T23:36:00.000Z',
  revoked_at: null,
  replaced_by: null,
  ...noRestrictions,
}

export const KeyPath = Type.Object({
  key_id: Type.String({ description: 'Public id of the key', examples: [exampleKey.id] }),
})

export const ApiKeyList = cursorPageOf(ApiKey, exampleKey)

export const ShownApiKey = envelopeOf(ApiKey, 'ShownApiKey', exampleKey)

const exampleOrganisation = { id: 'org_1aB2c3D4e5F6g7H8', name: 'Acme', plan: 'team' }

export const OwnApiKey = envelopeOf(
  Type.Object(
    {
      ...fields,
      organisation: Type.Object({
        id: Type.String({ description: 'Public id of the organisation' }),
        name: Type.String(),
        plan: Type.String(),
      }),
      usage: nullable(
        Type.Object({
          used: Type.Integer({ description: 'Signals recorded this month' }),
          limit: Type.Integer({ description: 'Signals that the month has' }),
          resets_at: Type.String({ format: 'date-time', description: 'When the next month begins' }),
        }),
        "The organisation's month; null for a key without the scope usage:read",
      ),
    },
    { title: 'OwnApiKey' },
  ),
  'ShownOwnApiKey',
  {
    ...exampleKey,
    scopes: ['history:read', 'usage:read'],
    organisation: exampleOrganisation,
    usage: { used: 3_210, limit: 10_000, resets_at: '2026-12-01T00:00:00.000Z' },
  },
)

const CreatedKey = Type.Object({
  id: fields.id,
  key: Type.String({ description: 'The text of the key, shown only here' }),
  org: Type.String({ description: 'Public id of the organisation' }),
  name: fields.name,
  scopes: fields.scopes,
  expires_at: fields.expires_at,
  ...KeyRestrictions.properties,
})

export type NewKey = Row<typeof CreatedKey>

const exampleCreated = {
  id: exampleKey.id,
  key: `psk_${'4fGh7Kq9'.padEnd(36, 'x')}`,
  org: exampleOrganisation.id,
  name: exampleKey.name,
  scopes: exampleKey.scopes,
  expires_at: null,
  ...noRestrictions,
}

export const CreatedApiKey = envelopeOf(CreatedKey, 'CreatedApiKey', exampleCreated)

export const NewApiKey = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: maxTextLength }),
    scopes: Type.Optional(
      Type.Array(Scope, { minItems: 1, description: 'What the key may do; alternatively, give a preset' }),
    ),
    preset: Type.Optional(
      literals(Object.keys(presets) as (keyof typeof presets)[], {
        description:
          'A named set of scopes. With neither `scopes` nor `preset`, the key gets every non-administrative scope.',
      }),
    ),
    expires_at: Type.Optional(nullable(time, 'ISO 8601 with its zone')),
    ...Type.Partial(KeyRestrictions).properties,
  },
  { title: 'NewApiKey', examples: [{ name: 'website', preset: 'app', expires_at: null }] },
)

export const ApiKeyChange = Type.Partial(
  Type.Object({
    ...NewApiKey.properties,
    add_scopes: Type.Array(Scope, { minItems: 1, description: 'Scopes to add to those of the key' }),
    remove_scopes: Type.Array(Scope, { minItems: 1, description: 'Scopes to take from it' }),
  }),
  { title: 'ApiKeyChange', examples: [{ name: 'website, old' }] },
)

export type ApiKeyChange = Static<typeof ApiKeyChange>

export const keyRotation = rotationBody('KeyRotation', 365, 'How long the old key still works')
