import { setWebhook } from '../github/manage.ts'
import { type DatabaseCommand, requiredOption } from './command.ts'

export const webhookCommands: Record<string, DatabaseCommand> = {
  'webhooks github set': {
    usage: 'webhooks github set --org ORG',
    does: "makes the secret of an organisation's GitHub webhook, in place of an earlier one, and shows it, this once",
    values: ['org'],
    required: ['org'],
    async run({ db, clock, typed, output }) {
      output.show(await setWebhook(db, clock, requiredOption(typed, 'org')))
      output.say('Keep the secret now: it is not shown again. An earlier one is no longer taken.')
    },
  },
}
