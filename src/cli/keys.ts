import { createKey, listKeys, revokeKey } from '../keys/manage.ts'
import { parseInstant } from '../lib/times.ts'
import { requiredOption, type Typed, textOption, UsageError } from './command.ts'
import { onDatabase } from './database.ts'

export const keyCommands = onDatabase({
  'keys create': {
    usage: 'keys create --org ORG [--name N] [--expires-at TIME]',
    does: 'makes an API key and shows it, this once',
    values: ['org', 'name', 'expires-at'],
    required: ['org'],
    check: expiryOption,
    verifyWith: 'keys list --org ORG',
    async run({ db, clock, typed, output }) {
      const key = await createKey(db, clock, {
        org: requiredOption(typed, 'org'),
        name: textOption(typed, 'name') ?? 'default',
        expiresAt: expiryOption(typed),
      })
      output.show(key)
      output.say('Keep the key now: it is not shown again.')
    },
  },
  'keys list': {
    usage: 'keys list --org ORG',
    does: 'lists the keys of an organisation',
    values: ['org'],
    required: ['org'],
    async run({ db, typed, output }) {
      const keys = await listKeys(db, requiredOption(typed, 'org'))
      output.list(keys, ['id', 'name', 'prefix', 'created_at', 'expires_at', 'last_used_at', 'revoked_at'])
    },
  },
  'keys revoke': {
    usage: 'keys revoke ID',
    does: 'ends a key: it is refused everywhere within a second',
    words: 1,
    verifyWith: 'keys list --org ORG',
    async run({ db, clock, typed, output }) {
      output.show(await revokeKey(db, clock, typed.words[0] as string))
    },
  },
})

function expiryOption(typed: Typed): Date | null {
  const text = textOption(typed, 'expires-at')
  if (text === null) return null
  const instant = parseInstant(text)
  if (!instant)
    throw new UsageError(`--expires-at must be a time with its zone, as 2026-11-14T23:35:00Z, not "${text}"`)
  return instant
}
