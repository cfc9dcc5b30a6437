import { type Static, Type } from '@sinclair/typebox'
import { cursorPageOf } from '../lib/cursor_page.ts'

/** What a key may do, as `resource:action`. To write never implies to read. */
export const Scope = Type.Union([
  Type.Literal('history:read'),
  Type.Literal('history:write'),
  Type.Literal('signals:read'),
  Type.Literal('signals:write'),
  Type.Literal('signals:delete'),
  Type.Literal('prompts:read'),
  Type.Literal('prompts:write'),
  Type.Literal('usage:read'),
  Type.Literal('keys:read'),
  Type.Literal('keys:write'),
  Type.Literal('webhooks:write'),
])

export type Scope = Static<typeof Scope>

export const scopes: Scope[] = Scope.anyOf.map((option) => option.const)

export const Preset = Type.Union([
  Type.Literal('app'),
  Type.Literal('reader'),
  Type.Literal('ci'),
  Type.Literal('browser'),
  Type.Literal('admin'),
])

export type Preset = Static<typeof Preset>

const maybeTime = (description: string) =>
  Type.Union([Type.String({ format: 'date-time' }), Type.Null()], { description })

const browserFields = {
  origins: Type.Union([Type.Array(Type.String(), { minItems: 1, maxItems: 100 }), Type.Null()], {
    description:
      'The origins of the pages that a browser key is for, exact or as https://*.example.com; null for any other key',
  }),
  prompts: Type.Union([Type.Array(Type.String(), { minItems: 1, maxItems: 100 }), Type.Null()], {
    description: 'The prompts that a browser key is limited to; null for all',
  }),
  monthly_limit: Type.Union([Type.Integer({ minimum: 0, maximum: 2_147_483_647 }), Type.Null()], {
    description: "How many signals a browser key may record in a month; null for as many as the organisation's limit",
  }),
}

const fields = {
  id: Type.String({ description: 'Public id of the key' }),
  name: Type.String(),
  prefix: Type.String({ description: 'The first characters of the key, to recognise it by' }),
  scopes: Type.Array(Scope, { description: 'What the key may do' }),
  created_at: Type.String({ format: 'date-time' }),
  expires_at: maybeTime('From when on it is rejected; null for never'),
  last_used_at: maybeTime('True to a minute; null for never'),
  revoked_at: maybeTime('When it was revoked; null if it was not'),
  replaced_by: Type.Union([Type.String(), Type.Null()], { description: 'The key that it was rotated to' }),
  ...browserFields,
}

export const ApiKey = Type.Object(fields, { title: 'ApiKey' })

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
  origins: null,
  prompts: null,
  monthly_limit: null,
}

/** This schema is for the documentation alone. */
export const KeyPath = Type.Object({
  key_id: Type.String({ description: 'Public id of the key', examples: [exampleKey.id] }),
})

export const ApiKeyList = cursorPageOf(ApiKey, exampleKey)

export const ShownApiKey = Type.Object({ data: ApiKey }, { title: 'ShownApiKey', examples: [{ data: exampleKey }] })

export const OwnApiKey = Type.Object(
  {
    data: Type.Object(
      {
        ...fields,
        organisation: Type.Object({
          id: Type.String({ description: 'Public id of the organisation' }),
          name: Type.String(),
          plan: Type.String(),
        }),
        usage: Type.Union(
          [
            Type.Object({
              used: Type.Integer({ description: 'Signals recorded this month' }),
              limit: Type.Integer({ description: 'Signals that the month has' }),
              resets_at: Type.String({ format: 'date-time', description: 'When the next month begins' }),
            }),
            Type.Null(),
          ],
          { description: "The organisation's month; null for a key without the scope usage:read" },
        ),
      },
      { title: 'OwnApiKey' },
    ),
  },
  {
    title: 'ShownOwnApiKey',
    examples: [
      {
        data: {
          ...exampleKey,
          scopes: ['history:read', 'usage:read'],
          organisation: { id: 'org_1aB2c3D4e5F6g7H8', name: 'Acme', plan: 'team' },
          usage: { used: 3_210, limit: 10_000, resets_at: '2026-12-01T00:00:00.000Z' },
        },
      },
    ],
  },
)

export const CreatedApiKey = Type.Object(
  {
    data: Type.Object({
      id: fields.id,
      key: Type.Union([Type.String(), Type.Null()], {
        description: 'The key itself, shown this once; null when the answer is replayed',
      }),
      org: Type.String({ description: 'Public id of the organisation' }),
      name: fields.name,
      scopes: fields.scopes,
      expires_at: fields.expires_at,
      ...browserFields,
    }),
  },
  {
    title: 'CreatedApiKey',
    examples: [
      {
        data: {
          id: exampleKey.id,
          key: `psk_${'4fGh7Kq9'.padEnd(36, 'x')}`,
          org: 'org_1aB2c3D4e5F6g7H8',
          name: exampleKey.name,
          scopes: exampleKey.scopes,
          expires_at: null,
          origins: null,
          prompts: null,
          monthly_limit: null,
        },
      },
    ],
  },
)

const given = {
  scopes: Type.Optional(Type.Array(Scope, { minItems: 1, description: 'What the key may do; or give a preset' })),
  preset: Type.Optional(
    Type.Union(Preset.anyOf, { description: 'The scopes that a purpose needs. Neither: all but administration.' }),
  ),
  expires_at: Type.Optional(
    Type.Union([Type.String({ format: 'date-time' }), Type.Null()], { description: 'ISO 8601 with its zone' }),
  ),
  origins: Type.Optional(browserFields.origins),
  prompts: Type.Optional(browserFields.prompts),
  monthly_limit: Type.Optional(browserFields.monthly_limit),
}

export const NewApiKey = Type.Object(
  { name: Type.String({ minLength: 1, maxLength: 200 }), ...given },
  { title: 'NewApiKey', examples: [{ name: 'website', preset: 'app', expires_at: null }] },
)

export const ApiKeyChange = Type.Object(
  { name: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })), ...given },
  { title: 'ApiKeyChange', examples: [{ name: 'website, old' }] },
)

export const KeyRotation = Type.Object(
  {
    overlap_seconds: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 31_536_000,
        default: 86_400,
        description: 'For how long the old key still works',
      }),
    ),
  },
  { title: 'KeyRotation', examples: [{ overlap_seconds: 86_400 }] },
)
