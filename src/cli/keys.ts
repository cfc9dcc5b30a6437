import { createKey, listKeys, revokeKey, rotateKey } from '../keys/manage.ts'
import type { KeyRestrictions, Scope } from '../keys/schema.ts'
import { defaultScopes, parseScopes, presets, scopesOfPreset } from '../keys/scopes.ts'
import { readAllPages } from '../lib/cursor_page.ts'
import { parseDuration } from '../lib/durations.ts'
import { parseInstant } from '../lib/times.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { integerOption, listOption, requiredOption, type Typed, textOption, UsageError } from './command.ts'
import { onDatabase } from './database.ts'

const keepItNow = 'Keep the key now: it is not shown again.'

export const keyCommands = onDatabase({
  'keys create': {
    usage: `keys create --org ORG [--name N] [--preset ${Object.keys(presets).join('|')}] [--scopes A,B] [--expires-at TIME] [--origin O]… [--prompt pmt_…]… [--monthly-limit N]`,
    does: 'makes an API key and shows it, this once; one for browsers needs an --origin, and may have limits of its own',
    values: ['org', 'name', 'preset', 'scopes', 'expires-at', 'origin', 'prompt', 'monthly-limit'],
    repeatable: ['origin', 'prompt'],
    required: ['org'],
    check(typed) {
      expiryOption(typed)
      scopesOption(typed)
      restrictionOptions(typed)
    },
    verifyWith: 'keys list --org ORG',
    async run({ db, clock, typed, output }) {
      const key = await createKey(db, clock, {
        org: requiredOption(typed, 'org'),
        name: textOption(typed, 'name') ?? 'default',
        scopes: scopesOption(typed),
        expiresAt: expiryOption(typed),
        ...restrictionOptions(typed),
      })
      output.show(key)
      output.say(keepItNow)
    },
  },
  'keys list': {
    usage: 'keys list --org ORG',
    does: 'lists the keys of an organisation',
    values: ['org'],
    required: ['org'],
    async run({ db, typed, output }) {
      const { id } = await requireOrganisation(db, requiredOption(typed, 'org'))
      const keys = await readAllPages((page) => listKeys(db, id, page))
      const times = ['created_at', 'expires_at', 'last_used_at', 'revoked_at']
      const limits = ['origins', 'prompts', 'monthly_limit']
      output.list(keys.toReversed(), ['id', 'name', 'prefix', 'scopes', ...times, 'replaced_by', ...limits])
    },
  },
  'keys revoke': {
    usage: 'keys revoke ID',
    does: 'ends a key: it is rejected everywhere within a second',
    words: 1,
    verifyWith: 'keys list --org ORG',
    async run({ db, clock, typed, output }) {
      output.show(await revokeKey(db, clock, typed.words[0] as string))
    },
  },
  'keys rotate': {
    usage: 'keys rotate ID [--overlap 24h]',
    does: 'makes a key in the place of another, which works until the overlap ends, and shows it, this once',
    values: ['overlap'],
    words: 1,
    check: overlapOption,
    verifyWith: 'keys list --org ORG',
    async run({ db, clock, typed, output }) {
      output.show(await rotateKey(db, clock, typed.words[0] as string, overlapOption(typed)))
      output.say(keepItNow)
    },
  },
})

function scopesOption(typed: Typed): Scope[] {
  const [preset, names] = [textOption(typed, 'preset'), textOption(typed, 'scopes')]
  if (preset !== null && names !== null) throw new UsageError('--preset or --scopes, not both')
  try {
    if (preset !== null) return scopesOfPreset(preset)
    return names === null ? defaultScopes : parseScopes(names.split(',').map((name) => name.trim()))
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

function restrictionOptions(typed: Typed): KeyRestrictions {
  const origins = listOption(typed, 'origin')
  const [prompts, limit] = [listOption(typed, 'prompt'), integerOption(typed, 'monthly-limit', 0)]
  if (origins === null && textOption(typed, 'preset') === 'browser') {
    throw new UsageError('--preset browser needs an --origin, as https://example.com or https://*.example.com')
  }
  if (origins === null && (prompts !== null || limit !== null)) {
    throw new UsageError('--prompt and --monthly-limit are for keys with an --origin')
  }
  return { origins, prompts, monthly_limit: limit }
}

function overlapOption(typed: Typed): number {
  const text = textOption(typed, 'overlap') ?? '24h'
  const ms = parseDuration(text)
  if (ms === undefined) throw new UsageError(`--overlap must be a duration, as 90s, 30m, 24h or 7d, not "${text}"`)
  return ms
}

function expiryOption(typed: Typed): Date | null {
  const text = textOption(typed, 'expires-at')
  if (text === null) return null
  const instant = parseInstant(text)
  if (!instant)
    throw new UsageError(`--expires-at must be a time with its zone, as 2026-11-14T23:35:00Z, not "${text}"`)
  return instant
}
