import { listAudit } from '../audit/list.ts'
import { defaultPageSize, maxPageSize } from '../lib/cursor_page.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { integerOption, requiredOption, type Typed, textOption } from './command.ts'
import { onDatabase } from './database.ts'

const limitOption = (typed: Typed) => Math.min(integerOption(typed, 'limit', 1) ?? defaultPageSize, maxPageSize)

export const auditCommands = onDatabase({
  'audit list': {
    usage: 'audit list --org ORG [--limit N] [--cursor C]',
    does: 'lists who changed keys, plans, prompts and webhooks of an organisation, newest first',
    values: ['org', 'limit', 'cursor'],
    required: ['org'],
    check: limitOption,
    async run({ db, typed, output }) {
      const { id } = await requireOrganisation(db, requiredOption(typed, 'org'))
      const page = { limit: limitOption(typed), cursor: textOption(typed, 'cursor') }
      const { data, nextCursor } = await listAudit(db, id, page)
      output.list(data, ['created_at', 'actor', 'action', 'subject', 'details'])
      if (nextCursor) output.say(`There are older ones: --cursor ${nextCursor}`)
    },
  },
})
