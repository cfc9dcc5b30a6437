import { setWebhook } from '../github/manage.ts'
import { onDatabase } from './database.ts'

export const commands = onDatabase([
  {
    usage: 'webhooks github set --org ORG',
    description:
      "makes the secret of an organisation's GitHub webhook, in place of an earlier one, and shows it, this once",
    verifyWith: 'audit list --org ORG',
    async run({ db, clock, args, output }) {
      output.show(await setWebhook(db, clock, args.required('org')))
      output.say('Keep the secret now: it is not shown again. An earlier one is no longer accepted.')
    },
  },
])
