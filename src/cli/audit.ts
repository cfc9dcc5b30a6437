import { listAudit } from '../audit/record.ts'
import { cursorParams } from '../lib/cursor_page.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { onDatabase } from './database.ts'

export const commands = onDatabase([
  {
    usage: 'audit list --org ORG [--limit N] [--cursor C]',
    description: 'lists who changed keys, plans, prompts and webhooks of an organisation, newest first',
    check: (args) => args.asQuery(cursorParams.parse),
    async run({ db, args, output }) {
      const { id } = await requireOrganisation(db, args.required('org'))
      const { data, nextCursor } = await listAudit(db, id, args.asQuery(cursorParams.parse))
      output.table(data, ['created_at', 'actor', 'action', 'subject…', 'details…'])
      if (nextCursor) output.say(`There are older ones: --cursor ${nextCursor}`)
    },
  },
])
