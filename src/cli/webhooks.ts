import { setWebhook } from '../github/settings.ts'
import { onDatabase } from './database.ts'

export const commands = onDatabase([
  {
    usage: 'webhooks github set --org ORG',
    description: "creates the secret of an organisation's GitHub webhook; it is shown only once",
    verifyWith: 'audit list --org ORG',
    async run({ db, clock, args, output }) {
      output.show(await setWebhook(db, clock, args.required('org')))
      output.say('Save the secret: it is not shown again. Events signed with an earlier secret are rejected.')
    },
  },
])
