import type { Scope } from '../http/caller.ts'
import { type Preset, scopes } from './schema.ts'

const administration: Scope[] = ['keys:read', 'keys:write', 'webhooks:write', 'prompts:write', 'signals:delete']

/** The scopes of a key created without any: everything except administration. */
export const defaultScopes: Scope[] = scopes.filter((scope) => !administration.includes(scope))

/** Named sets of scopes, by what a key is for. */
export const presets: Record<Preset, Scope[]> = {
  app: ['history:read', 'signals:write'],
  reader: scopes.filter((scope) => scope.endsWith(':read') && scope !== 'keys:read'),
  ci: ['history:write', 'prompts:read'],
  browser: ['signals:write'],
  admin: [...scopes],
}
