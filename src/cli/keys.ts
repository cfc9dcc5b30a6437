import type { Scope } from '../http/caller.ts'
import { changeKey, createKey, listKeys, revokeKey, rotateKey } from '../keys/manage.ts'
import type { KeyRestrictions } from '../keys/schema.ts'
import { parseScopes, presets, scopesOfPreset } from '../keys/scopes.ts'
import { readAllPages } from '../lib/cursor_page.ts'
import { parseInstant } from '../lib/times.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { type Arguments, UsageError } from './arguments.ts'
import { onDatabase } from './database.ts'
import { parseDuration } from './durations.ts'

const scopeUsage = `[--preset ${Object.keys(presets).join('|')}] [--scopes A,B]`
const keepItNow = 'Keep the key now: it is not shown again.'

export const commands = onDatabase([
  {
    usage: `keys create --org ORG [--name N] ${scopeUsage} [--expires-at TIME] [--origin O]… [--prompt pmt_…]… [--monthly-limit N]`,
    description:
      'makes an API key and shows it, this once; one for browsers needs an --origin, and may have limits of its own',
    check: keyOptions,
    verifyWith: 'keys list --org ORG',
    async run({ db, clock, args, output }) {
      output.show(await createKey(db, clock, keyOptions(args)))
      output.say(keepItNow)
    },
  },
  {
    usage: 'keys list --org ORG',
    description: 'lists the keys of an organisation',
    async run({ db, args, output }) {
      const { id } = await requireOrganisation(db, args.required('org'))
      const keys = await readAllPages((page) => listKeys(db, id, page))
      const times = ['created_at', 'expires_at', 'last_used_at', 'revoked_at'] as const
      const limits = ['origins', 'prompts', 'monthly_limit'] as const
      output.table(keys.toReversed(), ['id', 'name', 'prefix', 'scopes', ...times, 'replaced_by', ...limits])
    },
  },
  {
    usage: `keys update ID [--name N] ${scopeUsage} [--expires-at TIME|none] [--origin O]… [--prompt pmt_…|all]… [--monthly-limit N|none]`,
    description: 'changes what is given of a key, and leaves the rest; it holds everywhere within a second',
    check: changeOptions,
    verifyWith: 'keys list --org ORG',
    run: async ({ db, clock, args, output }) =>
      output.show(await changeKey(db, clock, args.positional(0), changeOptions(args))),
  },
  {
    usage: 'keys revoke ID',
    description: 'ends a key: it is rejected everywhere within a second',
    verifyWith: 'keys list --org ORG',
    run: async ({ db, clock, args, output }) => output.show(await revokeKey(db, clock, args.positional(0))),
  },
  {
    usage: 'keys rotate ID [--overlap 24h]',
    description: 'makes a key in the place of another, which works until the overlap ends, and shows it, this once',
    check: overlapOption,
    verifyWith: 'keys list --org ORG',
    async run({ db, clock, args, output }) {
      output.show(await rotateKey(db, clock, args.positional(0), overlapOption(args)))
      output.say(keepItNow)
    },
  },
])

function keyOptions(args: Arguments) {
  const [org, name] = [args.required('org'), args.text('name') ?? 'default']
  const expiresAt = expiryOption(args)
  return { org, name, expiresAt, scopes: scopesOption(args), ...restrictionOptions(args) }
}

function changeOptions(args: Arguments) {
  requireOrigins(args)
  const prompts = args.list('prompt') ?? undefined
  const given = {
    name: args.text('name') ?? undefined,
    scopes: scopesOption(args),
    expiresAt: unlessNone(args, 'expires-at', expiryOption),
    origins: args.list('origin') ?? undefined,
    prompts: prompts?.join() === 'all' ? null : prompts,
    monthly_limit: unlessNone(args, 'monthly-limit', limitOption),
  }
  if (Object.values(given).every((value) => value === undefined)) throw new UsageError('nothing to change is given')
  return given
}

/** The value of an option; null when it is `none`, and undefined when it is not given. */
function unlessNone<T>(args: Arguments, name: string, parse: (args: Arguments) => T): T | null | undefined {
  const text = args.text(name)
  if (text === null) return undefined
  return text === 'none' ? null : parse(args)
}

/** Undefined without either option. */
function scopesOption(args: Arguments): Scope[] | undefined {
  const [preset, names] = [args.text('preset'), args.text('scopes')]
  if (preset !== null && names !== null) throw new UsageError('--preset or --scopes, not both')
  try {
    if (preset !== null) return scopesOfPreset(preset)
    return names === null ? undefined : parseScopes(names.split(',').map((name) => name.trim()))
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

function restrictionOptions(args: Arguments): KeyRestrictions {
  const [origins, prompts, limit] = [args.list('origin'), args.list('prompt'), limitOption(args)]
  requireOrigins(args)
  if (origins === null && (prompts !== null || limit !== null)) {
    throw new UsageError('--prompt and --monthly-limit are for keys with an --origin')
  }
  return { origins, prompts, monthly_limit: limit }
}

function requireOrigins(args: Arguments): void {
  if (args.text('preset') === 'browser' && args.list('origin') === null) {
    throw new UsageError('--preset browser needs an --origin, as https://example.com or https://*.example.com')
  }
}

const limitOption = (args: Arguments) => args.integer('monthly-limit', 0)

function overlapOption(args: Arguments): number {
  const text = args.text('overlap') ?? '24h'
  const ms = parseDuration(text)
  if (ms === undefined) throw new UsageError(`--overlap must be a duration, as 90s, 30m, 24h or 7d, not "${text}"`)
  return ms
}

function expiryOption(args: Arguments): Date | null {
  const text = args.text('expires-at')
  if (text === null) return null
  const instant = parseInstant(text)
  if (!instant)
    throw new UsageError(`--expires-at must be a time with its zone, as 2026-11-14T23:35:00Z, not "${text}"`)
  return instant
}
