import type { Preset, Scope } from '../../lib/scopes.ts'

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

/** What each preset is for. */
export const purposes: Record<Preset, string> = {
  app: 'For an application: records signals, reads history.',
  reader: 'For reports and dashboards: reads everything but keys and webhooks.',
  ci: 'For a pipeline: records deployments.',
  browser: 'For web pages: records signals from the origins that you list.',
  admin: 'For administrators: everything.',
}
