import { parseNewKey, toKeyChange, validateKeyChange } from '../keys/given.ts'
import { changeKey, createKey, listKeys, revokeKey, rotateKey } from '../keys/manage.ts'
import { presets } from '../keys/schema.ts'
import { readAllPages } from '../lib/cursor_page.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { type Arguments, namingOptions, UsageError } from './command.ts'
import { onDatabase } from './database.ts'

const scopeUsage = `[--preset ${Object.keys(presets).join('|')}] [--scopes A,B]`
const keepItNow = 'Keep the key now: it is not shown again.'

export const commands = onDatabase([
  {
    usage: `keys create --org ORG [--name N] ${scopeUsage} [--expires-at TIME] [--origin O]… [--prompt pmt_…]… [--monthly-limit N]`,
    description:
      'creates an API key; it is shown only once. A browser key needs an --origin and may have its own limits',
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
    description: 'changes the given properties of a key; effective everywhere within a second',
    check: changeOptions,
    verifyWith: 'keys list --org ORG',
    run: async ({ db, clock, args, output }) =>
      output.show(await changeKey(db, clock, args.positional(0), changeOptions(args))),
  },
  {
    usage: 'keys revoke ID',
    description: 'revokes a key: it is rejected everywhere within a second',
    verifyWith: 'keys list --org ORG',
    run: async ({ db, clock, args, output }) => output.show(await revokeKey(db, clock, args.positional(0))),
  },
  {
    usage: 'keys rotate ID [--overlap 24h]',
    description:
      'creates a key that replaces another; the old key works until the overlap ends. The new key is shown only once',
    check: overlapOption,
    verifyWith: 'keys list --org ORG',
    async run({ db, clock, args, output }) {
      output.show(await rotateKey(db, clock, args.positional(0), overlapOption(args)))
      output.say(keepItNow)
    },
  },
])

function keyOptions(args: Arguments) {
  const given = { ...givenOptions(args), name: args.text('name') ?? 'default' }
  return { ...namingOptions(() => parseNewKey(given), optionOf), org: args.required('org') }
}

function changeOptions(args: Arguments) {
  const given = givenOptions(args)
  if (Object.values(given).every((value) => value === undefined)) throw new UsageError('nothing to change is given')
  return namingOptions(() => toKeyChange(validateKeyChange(given)), optionOf)
}

/** The options in the form of a request's body. `none` and `all` become null. */
function givenOptions(args: Arguments) {
  const [prompts, scopes] = [args.list('prompt') ?? undefined, args.text('scopes')?.split(',')]
  const [expiresAt, limit] = [args.text('expires-at') ?? undefined, args.text('monthly-limit') ?? undefined]
  return {
    name: args.text('name') ?? undefined,
    scopes: scopes?.map((name) => name.trim()),
    preset: args.text('preset') ?? undefined,
    expires_at: expiresAt === 'none' ? null : expiresAt,
    origins: args.list('origin') ?? undefined,
    prompts: prompts?.join() === 'all' ? null : prompts,
    monthly_limit: limit === undefined || limit === 'none' ? limit && null : args.integer('monthly-limit', 0),
  }
}

/** The option for a place in the body: `--origin` for `/origins/0`. */
const optionOf = (path: string): string =>
  path
    .replace(/^\/(\w+).*/, '$1')
    .replace(/^(origin|prompt)s$/, '$1')
    .replaceAll('_', '-')

const unitMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

function overlapOption(args: Arguments): number {
  const text = args.text('overlap') ?? '24h'
  const [, number, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (!unit) throw new UsageError(`--overlap must be a duration such as 90s, 30m, 24h or 7d, not "${text}"`)
  return Number(number) * (unitMs[unit] as number)
}
