import { setWebhook } from '../github/manage.ts'
import { requiredOption } from './command.ts'
import { onDatabase } from './database.ts'

export const webhookCommands = onDatabase({
  'webhooks github set': {
    usage: 'webhooks github set --org ORG',
    does: "makes the secret of an organisation's GitHub webhook, in place of an earlier one, and shows it, this once",
    values: ['org'],
    required: ['org'],
    verifyWith: 'audit list --org ORG',
    async run({ db, clock, typed, output }) {
      output.show(await setWebhook(db, clock, requiredOption(typed, 'org')))
      output.say('Keep the secret now: it is not shown again. An earlier one is no longer accepted.')
    },
  },
})
