import { ServiceError } from '../errors.ts'
import type { Scope } from '../http/caller.ts'
import { type Preset, scopes } from './schema.ts'

const administration: Scope[] = ['keys:read', 'keys:write', 'webhooks:write', 'prompts:write', 'signals:delete']

/** A key made without a word of scopes can do all that the two endpoints of the interface need, and administer nothing. */
export const defaultScopes: Scope[] = scopes.filter((scope) => !administration.includes(scope))

/** Sets of scopes by what a key is for, so that nobody has to know the scopes. */
export const presets: Record<Preset, Scope[]> = {
  app: ['history:read', 'signals:write'],
  reader: scopes.filter((scope) => scope.endsWith(':read') && scope !== 'keys:read'),
  ci: ['history:write', 'prompts:read'],
  browser: ['signals:write'],
  admin: [...scopes],
}

/** The scopes of these names, each once and in the order of the list. */
export function parseScopes(names: string[]): Scope[] {
  const unknown = names.filter((name) => !(scopes as readonly string[]).includes(name))
  if (unknown.length > 0) {
    throw new ServiceError('validation_error', `There is no scope ${unknown.join(', ')}: use ${scopes.join(', ')}.`)
  }
  if (names.length === 0) throw new ServiceError('validation_error', 'A key needs at least one scope.')
  return scopes.filter((scope) => names.includes(scope))
}

export function scopesOfPreset(name: string): Scope[] {
  if (Object.hasOwn(presets, name)) return presets[name as Preset]
  throw new ServiceError('validation_error', `There is no preset ${name}: use ${Object.keys(presets).join(', ')}.`)
}
