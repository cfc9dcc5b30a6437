import type { Actor } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Sql } from '../db/client.ts'
import { type Detail, forbidden, invalid } from '../errors.ts'
import { isOriginPattern } from '../lib/origins.ts'
import { presets, type Scope } from '../lib/scopes.ts'
import { parseInstant } from '../lib/times.ts'
import { bodyOf, changeOf } from '../lib/validate.ts'
import { findForeignPrompts } from '../prompts/find.ts'
import { ApiKeyChange, NewApiKey } from './schema.ts'
import type { KeyValues } from './store.ts'

type GivenKey = { [Name in keyof KeyValues]?: KeyValues[Name] | undefined }
export type KeyToCreate = GivenKey & { name: string }
export type KeyChange = GivenKey & Pick<ApiKeyChange, 'add_scopes' | 'remove_scopes'>

export const newKeyBody = bodyOf(NewApiKey, 'The key', (key): KeyToCreate => ({ ...toValues(key), name: key.name }))

export const keyChangeBody = changeOf(ApiKeyChange, ({ add_scopes, remove_scopes, ...given }): KeyChange => {
  const values = toValues(given)
  if (values.scopes && (add_scopes ?? remove_scopes)) {
    throw wrong(add_scopes ? '/add_scopes' : '/remove_scopes', 'must be absent when scopes or a preset are given')
  }
  return { ...values, ...(add_scopes && { add_scopes }), ...(remove_scopes && { remove_scopes }) }
})

/** Turns a preset into its scopes. Each scope, origin and prompt is kept once. */
function toValues(given: Omit<ApiKeyChange, 'add_scopes' | 'remove_scopes'>): GivenKey {
  const { name, scopes, preset, origins, prompts, monthly_limit } = given
  const expires_at = parseExpiry(given.expires_at)
  if (preset === 'browser' && !origins) throw wrong('/origins', 'must be given with the preset browser')
  if (preset && scopes) throw wrong('/preset', 'must be absent when scopes are given')
  return {
    name,
    scopes: preset ? presets[preset] : scopes && inOrder(scopes),
    expires_at,
    origins: origins && [...new Set(origins)],
    prompts: prompts && [...new Set(prompts)],
    monthly_limit,
  }
}

/** Each scope once, in the order of the documentation. */
const inOrder = (scopes: Scope[]): Scope[] => presets.admin.filter((scope) => scopes.includes(scope))

export function scopesAfter({ scopes, add_scopes = [], remove_scopes = [] }: KeyChange, current: Scope[]): Scope[] {
  const after = inOrder([...(scopes ?? current), ...add_scopes]).filter((scope) => !remove_scopes.includes(scope))
  if (after.length === 0) throw wrong('/scopes', 'must not be empty')
  return after
}

/** Undefined when it is not given, null for a key that does not expire. */
function parseExpiry(text: string | null | undefined): Date | null | undefined {
  if (text === undefined || text === null) return text
  const instant = parseInstant(text)
  if (!instant) throw wrong('/expires_at', 'must be an ISO 8601 time with its zone, such as 2026-11-14T23:35:00Z')
  return instant
}

const wrong = (path: string, message: string) => invalid('The key is not valid.', [{ path, message }])

const expectedOrigin = 'must be an origin as browsers send it, such as https://example.com or https://*.example.com'

/**
 * Anyone who opens a page can read its key, so a key with origins may only record signals. Of prompts only those that are
 * given are checked: a key can be limited also when one of its prompts was erased.
 */
export async function requireRestrictions(
  sql: Sql,
  organisationId: number,
  key: KeyValues,
  givenPrompts = key.prompts,
): Promise<void> {
  const { scopes, origins, prompts, monthly_limit: limit } = key
  const problems: Detail[] = []
  if (origins) {
    if (scopes.join() !== presets.browser.join()) {
      problems.push({ path: '/origins', message: `must be absent unless ${presets.browser} is the only scope` })
    }
    for (const [index, origin] of origins.entries()) {
      if (!isOriginPattern(origin)) problems.push({ path: `/origins/${index}`, message: expectedOrigin })
    }
    problems.push(...(await findForeignPrompts(sql, organisationId, givenPrompts ?? [])))
  } else {
    const message = 'must be absent for a key without origins'
    if (prompts) problems.push({ path: '/prompts', message })
    if (limit !== null) problems.push({ path: '/monthly_limit', message })
  }
  if (problems.length > 0) throw invalid('The key is not valid.', problems.slice(0, 10))
}

/** An actor cannot grant scopes that it lacks. */
export function requireGrantable({ scopes: held }: Actor, granted: Scope[]): void {
  const missing = held && granted.find((scope) => !held.includes(scope))
  if (missing) throw forbidden(missing)
}

/** An actor whose key expires cannot grant a longer life: else the holder would keep its scopes through another key. */
export function requireLifeWithin({ expiresAt: own }: Actor, expiresAt: Date | null): void {
  if (!own || !isLater(expiresAt, own)) return
  throw invalid('A key cannot grant a longer life than its own.', [
    {
      path: '/expires_at',
      message: `must be no later than ${own.toISOString()}, when the key of this request expires`,
    },
  ])
}

/** Compares two expiries; null means never. */
export const isLater = (expiresAt: Date | null, than: Date | null): boolean =>
  than !== null && (expiresAt === null || expiresAt > than)

export function requireFuture(expiresAt: Date | null, clock: Clock): void {
  if (expiresAt && expiresAt <= clock.now()) {
    throw invalid('The key would have expired already.', [{ path: '/expires_at', message: 'must be later than now' }])
  }
}
