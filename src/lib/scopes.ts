/** What a key may do, as `resource:action`. Who may change a thing sees it in the answer, but cannot look it up. */
export const scopes = [
  'history:read',
  'history:write',
  'history:delete',
  'signals:read',
  'signals:write',
  'signals:delete',
  'prompts:read',
  'prompts:write',
  'usage:read',
  'keys:read',
  'keys:write',
  'webhooks:read',
  'webhooks:write',
] as const

export type Scope = (typeof scopes)[number]

const administration: Scope[] = [
  'keys:read',
  'keys:write',
  'webhooks:read',
  'webhooks:write',
  'prompts:write',
  'signals:delete',
  'history:delete',
]

/** The scopes of a key created without any: everything except administration. */
export const defaultScopes: Scope[] = scopes.filter((scope) => !administration.includes(scope))

export const presets = {
  app: ['history:read', 'signals:write'],
  reader: scopes.filter((scope) => scope.endsWith(':read') && !administration.includes(scope)),
  ci: ['history:read', 'history:write', 'prompts:read', 'prompts:write'],
  browser: ['signals:write'],
  admin: [...scopes],
} satisfies Record<string, Scope[]>

export type Preset = keyof typeof presets

/** The preset with exactly these scopes, if there is one. */
export const presetOf = (given: Scope[]): Preset | undefined =>
  (Object.keys(presets) as Preset[]).find((name) => presets[name].toSorted().join() === given.toSorted().join())
