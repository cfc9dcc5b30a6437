import { listAudit } from '../audit/list.ts'
import { type Config, localUrlOf } from '../config.ts'
import { setWebhook } from '../github/webhook.ts'
import { createKey } from '../keys/manage.ts'
import { presets } from '../keys/schema.ts'
import { cursorParams } from '../lib/cursor_page.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { onDatabase } from './database.ts'

const lifeMs = 12 * 3_600_000

const readingScopes = presets.admin.filter((scope) => scope.endsWith(':read'))

export const commands = onDatabase([
  {
    usage: 'audit list --org ORG [--limit N] [--cursor C]',
    description: 'lists who changed keys, plans, prompts and webhooks of an organisation, newest first',
    check: (args) => args.integer('limit', 1),
    async run({ db, args, output }) {
      const { id } = await requireOrganisation(db, args.required('org'))
      const { data, nextCursor } = await listAudit(db, id, args.asQuery(cursorParams.parse))
      output.table(data, ['created_at', 'actor', 'action', 'subject', 'details'])
      if (nextCursor) output.say(`There are older ones: --cursor ${nextCursor}`)
    },
  },
  {
    usage: 'webhooks github set --org ORG',
    description: "creates the secret of an organisation's GitHub webhook; it is shown only once",
    verifyWith: 'audit list --org ORG',
    async run({ db, clock, args, output }) {
      output.show(await setWebhook(db, clock, args.required('org')))
      output.say('Save the secret: it is not shown again. Deliveries signed with an earlier secret are rejected.')
    },
  },
  {
    usage: 'console --org ORG [--admin]',
    description:
      'prints a sign-in link for the console, with a read-only key that expires in 12 hours; --admin allows changes',
    verifyWith: 'keys list --org ORG',
    async run({ db, clock, config, args, output }) {
      const url = consoleUrlOf(config)
      const expiresAt = new Date(clock.now().getTime() + lifeMs)
      const org = args.required('org')
      const granted = args.options.admin ? presets.admin : readingScopes
      const { id, key } = await createKey(db, clock, { org, name: 'console', scopes: granted, expiresAt })
      output.show({ link: linkTo(url, key), key: id, expires_at: expiresAt })
      output.say('Anyone with the link is signed in: treat it like a password.')
    },
  },
])

/** A link that opens the console signed in. The part after # stays in the browser: no server and no log sees it. */
export const linkTo = (url: string, key: string): string => `${url}/#key=${key}`

function consoleUrlOf(config: Config): string {
  if (config.CONSOLE === 'off') throw new Error('The console is turned off: CONSOLE is off.')
  if (config.PUBLIC_URL) return config.PUBLIC_URL
  if (config.PORT === 0) throw new Error('Set PUBLIC_URL or PORT: with PORT=0 the URL of the service is unknown.')
  return localUrlOf(config)
}
