import { invalid } from '../errors.ts'
import { parseInstant } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import { ApiKeyChange, scopes as allScopes, NewApiKey } from './schema.ts'
import { presets } from './scopes.ts'

const validateNew = createValidator(NewApiKey, 'The key')
const validateChange = createValidator(ApiKeyChange, 'The change')

/** Parses what a caller gives of a new key. */
export function parseNewKey(given: unknown) {
  const key = validateNew(given)
  const { expiresAt = null, ...parsed } = parse(key)
  return { ...parsed, name: key.name, expiresAt }
}

/** Parses what a caller gives of a key to change; the rest is undefined. */
export const parseKeyChange = (given: unknown) => parse(validateChange(given))

/** Turns a preset into its scopes. Each scope, origin and prompt is kept once. */
function parse({ name, scopes, preset, expires_at, origins, prompts, monthly_limit }: ApiKeyChange) {
  const expiresAt = parseExpiry(expires_at)
  if (preset === 'browser' && !origins) throw wrong('/origins', 'must be given with the preset browser')
  if (preset && scopes) throw wrong('/preset', 'must be absent when scopes are given')
  return {
    name,
    scopes: preset ? presets[preset] : scopes && allScopes.filter((scope) => scopes.includes(scope)),
    expiresAt,
    origins: origins && [...new Set(origins)],
    prompts: prompts && [...new Set(prompts)],
    monthly_limit,
  }
}

/** Undefined when it is not given, null for a key that does not expire. */
function parseExpiry(text: string | null | undefined): Date | null | undefined {
  if (text === undefined || text === null) return text
  const instant = parseInstant(text)
  if (!instant) throw wrong('/expires_at', 'must be an ISO 8601 time with its zone, such as 2026-11-14T23:35:00Z')
  return instant
}

const wrong = (path: string, message: string) => invalid('The key is not valid.', [{ path, message }])
