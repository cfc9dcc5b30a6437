import type { Sql } from '../db/client.ts'
import { type Detail, invalid } from '../errors.ts'
import { isOriginPattern } from '../lib/origins.ts'
import { findOwnPrompts } from '../prompts/find.ts'
import { presets } from './scopes.ts'
import type { KeyValues } from './store.ts'

const expectedOrigin = 'must be an origin as browsers send it, such as https://example.com or https://*.example.com'
const expectedPrompt = 'must be a prompt of the organisation'

/**
 * Checks the restrictions of a key against its scopes and its organisation. Anyone who opens a page can read its key, so
 * a key with origins may only record signals. Only a key with origins may have its own limits.
 */
export async function requireRestrictions(sql: Sql, organisationId: number, key: KeyValues): Promise<void> {
  const { scopes, origins, prompts, monthly_limit: limit } = key
  const problems: Detail[] = []
  if (origins) {
    if (scopes.join() !== presets.browser.join()) {
      problems.push({ path: '/origins', message: `must be absent unless ${presets.browser} is the only scope` })
    }
    for (const [index, origin] of origins.entries()) {
      if (!isOriginPattern(origin)) problems.push({ path: `/origins/${index}`, message: expectedOrigin })
    }
    const own = await findOwnPrompts(sql, organisationId, prompts ?? [])
    for (const [index, prompt] of (prompts ?? []).entries()) {
      if (!own.has(prompt)) problems.push({ path: `/prompts/${index}`, message: expectedPrompt })
    }
  } else {
    const message = 'must be absent for a key without origins'
    if (prompts) problems.push({ path: '/prompts', message })
    if (limit !== null) problems.push({ path: '/monthly_limit', message })
  }
  if (problems.length > 0) throw invalid('The key is not valid.', problems.slice(0, 10))
}
