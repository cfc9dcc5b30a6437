import type { Scope } from '../client/schemas.ts'

export type Preset = 'app' | 'reader' | 'ci' | 'browser' | 'admin'

/** What each scope allows, in the words of the settings. */
export const meanings: Record<Scope, string> = {
  'history:read': 'see the history of prompts',
  'history:write': 'record history',
  'signals:read': 'see signals',
  'signals:write': 'record signals',
  'signals:delete': 'erase signals',
  'prompts:read': 'see prompts',
  'prompts:write': 'make and change prompts',
  'usage:read': 'see what the month has used',
  'keys:read': 'see keys and the audit log',
  'keys:write': 'make, change and revoke keys',
  'webhooks:write': 'set the secret of the webhook',
}

export const scopes = Object.keys(meanings) as Scope[]

/** The service has the same table; a test compares them. */
export const presets: Record<Preset, { scopes: Scope[]; says: string }> = {
  app: { scopes: ['history:read', 'signals:write'], says: 'an application: records signals, reads history' },
  reader: {
    scopes: ['history:read', 'signals:read', 'prompts:read', 'usage:read'],
    says: 'reports and dashboards: sees everything but keys',
  },
  ci: { scopes: ['history:write', 'prompts:read'], says: 'a pipeline: records what it deploys' },
  browser: { scopes: ['signals:write'], says: 'web pages: records signals from the origins that you list' },
  admin: { scopes, says: 'running the organisation: everything' },
}

/** The name of the preset with exactly these scopes, if there is one. */
export const presetOf = (given: Scope[]): Preset | undefined =>
  (Object.keys(presets) as Preset[]).find((name) => presets[name].scopes.join() === given.join())
