import { type KeyChange, parseNewKey, toKeyChange, validateKeyChange } from '../keys/given.ts'
import { changeKey, createKey, listKeys, revokeKey, rotateKey } from '../keys/manage.ts'
import { keyRotation } from '../keys/schema.ts'
import { readAllPages } from '../lib/cursor_page.ts'
import { presetOf, presets, type Scope } from '../lib/scopes.ts'
import { number } from '../lib/texts.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { type Arguments, UsageError } from './command.ts'
import { onDatabase } from './database.ts'
import { type AnyColumn, minuteOf } from './output.ts'

const scopeUsage = `[--preset ${Object.keys(presets).join('|')}] [--scopes A,B]`
const keepItNow = 'Keep the key now: it is not shown again.'

export const commands = onDatabase([
  {
    usage: `keys create --org ORG [--name N] ${scopeUsage} [--expires-at TIME] [--origin O]… [--prompt PROMPT]… [--monthly-limit N]`,
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
    async run({ db, clock, args, output }) {
      const { id } = await requireOrganisation(db, args.required('org'))
      const keys = await readAllPages((page) => listKeys(db, id, page))
      output.table(keys.toReversed(), columnsAt(clock.now()))
    },
  },
  {
    usage: `keys update ID [--name N] ${scopeUsage} [--add-scope A,B] [--remove-scope A,B] [--expires-at TIME|none] [--origin O]… [--prompt PROMPT|all]… [--monthly-limit N|none]`,
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
    check: (args) => args.overlapMs(keyRotation.maxDays),
    verifyWith: 'keys list --org ORG',
    async run({ db, clock, args, output }) {
      output.show(await rotateKey(db, clock, args.positional(0), args.overlapMs(keyRotation.maxDays)))
      output.say(keepItNow)
    },
  },
])

type ListedKey = Awaited<ReturnType<typeof listKeys>>['data'][number]

const columnsAt = (now: Date): AnyColumn<ListedKey>[] => [
  'id',
  'name…',
  'prefix',
  { name: 'scopes', cell: ({ scopes }) => presetOf(scopes) ?? scopes.join(','), shrinks: true },
  { name: 'restricted to', cell: describeRestrictions, shrinks: true },
  'last_used_at',
  { name: 'state', cell: (key) => stateOf(key, now) },
]

function describeRestrictions({ origins, prompts, monthly_limit }: ListedKey): string {
  const limit = monthly_limit === null ? [] : [`${number(monthly_limit)} per month`]
  return [...(origins ?? []), ...(prompts ?? []), ...limit].join(', ') || '-'
}

function stateOf({ revoked_at, expires_at }: ListedKey, now: Date): string {
  if (revoked_at) return `revoked ${minuteOf(revoked_at.toISOString())}`
  if (!expires_at) return 'active'
  return `${expires_at > now ? 'expires' : 'expired'} ${minuteOf(expires_at.toISOString())}`
}

function keyOptions(args: Arguments) {
  const given = { ...givenOptions(args), name: args.text('name') ?? 'default' }
  return { ...args.naming(() => parseNewKey(given)), org: args.required('org') }
}

function changeOptions(args: Arguments): KeyChange {
  const given = givenOptions(args)
  const isGiven = Object.values(given).some((value) => value !== undefined)
  const change: KeyChange = isGiven ? args.naming(() => toKeyChange(validateKeyChange(given))) : {}
  const [added, removed] = [scopesIn(args, 'add-scope'), scopesIn(args, 'remove-scope')]
  if (added.length + removed.length === 0) {
    if (!isGiven) throw new UsageError('nothing to change is given')
    return change
  }
  if (change.scopes) throw new UsageError('--add-scope and --remove-scope cannot come with --scopes or --preset')
  const edit = (scopes: Scope[]) => [...scopes, ...added].filter((scope) => !removed.includes(scope))
  return { ...change, scopes: edit }
}

function scopesIn(args: Arguments, option: string): Scope[] {
  const names = args.names(option) ?? []
  const unknown = names.find((name) => !presets.admin.some((scope) => scope === name))
  if (unknown !== undefined) throw new UsageError(`--${option} must be scopes such as history:read, not "${unknown}"`)
  return names as Scope[]
}

/** The options in the form of a request's body. `none` and `all` become null. */
function givenOptions(args: Arguments) {
  const [expiresAt, prompts, limit] = [args.given('expires-at'), args.list('prompt'), args.given('monthly-limit')]
  return {
    name: args.given('name'),
    scopes: args.names('scopes'),
    preset: args.given('preset'),
    expires_at: expiresAt === 'none' ? null : expiresAt,
    origins: args.list('origin'),
    prompts: prompts?.join() === 'all' ? null : prompts,
    monthly_limit: limit === undefined || limit === 'none' ? limit && null : args.integer('monthly-limit', 0),
  }
}
