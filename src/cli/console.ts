import { type Config, localUrlOf } from '../config.ts'
import { createKey } from '../keys/manage.ts'
import { presets } from '../lib/scopes.ts'
import { onDatabase } from './database.ts'

const readingScopes = presets.admin.filter((scope) => scope.endsWith(':read'))

export const commands = onDatabase([
  {
    usage: 'console --org ORG [--admin]',
    description:
      'prints a sign-in link for the console, with a read-only key that expires in 12 hours; --admin allows changes',
    verifyWith: 'keys list --org ORG',
    async run({ db, clock, config, args, output }) {
      if (config.CONSOLE === 'off') throw new Error('The console is turned off: CONSOLE is off.')
      const url = serviceUrlOf(config)
      const expires_at = new Date(clock.now().getTime() + 12 * 3_600_000)
      const org = args.required('org')
      const granted = args.options.admin ? presets.admin : readingScopes
      const { id, key } = await createKey(db, clock, { org, name: 'console', scopes: granted, expires_at })
      output.show({ link: linkTo(url, key), key: id, expires_at })
      output.say('Anyone with the link is signed in: treat it like a password.')
    },
  },
])

/** A link that opens the console signed in. The part after # stays in the browser: no server and no log sees it. */
export const linkTo = (url: string, key: string): string => `${url}/#key=${key}`

export function serviceUrlOf(config: Config): string {
  if (config.PUBLIC_URL) return config.PUBLIC_URL
  if (config.PORT === 0) throw new Error('Set PUBLIC_URL or PORT: with PORT=0 the URL of the service is unknown.')
  return localUrlOf(config)
}
