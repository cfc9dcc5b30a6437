import type { Scope } from '../client/schemas.ts'

export type Preset = 'app' | 'reader' | 'ci' | 'browser' | 'admin'

/** What each scope allows, in the words of the settings. */
export const meanings: Record<Scope, string> = {
  'history:read': 'see history',
  'history:write': 'record history',
  'history:delete': 'remove history entries',
  'signals:read': 'see signals',
  'signals:write': 'record signals',
  'signals:delete': 'erase signals',
  'prompts:read': 'see prompts',
  'prompts:write': 'create and edit prompts',
  'usage:read': 'see usage',
  'keys:read': 'see keys and the audit log',
  'keys:write': 'create, edit and revoke keys',
  'webhooks:read': 'see webhook endpoints',
  'webhooks:write': 'edit webhook endpoints, set the webhook secret',
}

export const scopes = Object.keys(meanings) as Scope[]

/** The service has the same table; a test compares them. */
export const presets: Record<Preset, { scopes: Scope[]; says: string }> = {
  app: { scopes: ['history:read', 'signals:write'], says: 'For an application: records signals, reads history.' },
  reader: {
    scopes: ['history:read', 'signals:read', 'prompts:read', 'usage:read'],
    says: 'For reports and dashboards: reads everything but keys and webhooks.',
  },
  ci: {
    scopes: ['history:read', 'history:write', 'prompts:read', 'prompts:write'],
    says: 'For a pipeline: records deployments.',
  },
  browser: { scopes: ['signals:write'], says: 'For web pages: records signals from the origins that you list.' },
  admin: { scopes, says: 'For administrators: everything.' },
}

/** The name of the preset with exactly these scopes, if there is one. */
export const presetOf = (given: Scope[]): Preset | undefined =>
  (Object.keys(presets) as Preset[]).find((name) => presets[name].scopes.join() === given.join())
