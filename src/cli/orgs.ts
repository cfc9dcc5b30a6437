import {
  createOrganisation,
  listOrganisations,
  resumeOrganisation,
  setPlan,
  setRetention,
  suspendOrganisation,
} from '../orgs/manage.ts'
import { integerOption, requiredOption, type Typed, UsageError } from './command.ts'
import { onDatabase } from './database.ts'

const limitOption = (typed: Typed) => integerOption(typed, 'monthly-limit', 0)

export const orgCommands = onDatabase({
  'orgs create': {
    usage: 'orgs create --name N --plan free|team|business [--monthly-limit N]',
    does: 'makes an organisation',
    isFirst: true,
    values: ['name', 'plan', 'monthly-limit'],
    required: ['name', 'plan'],
    check: limitOption,
    verifyWith: 'orgs list',
    async run({ db, clock, typed, output }) {
      const organisation = await createOrganisation(db, clock, {
        name: requiredOption(typed, 'name'),
        plan: requiredOption(typed, 'plan'),
        monthlyLimit: limitOption(typed),
      })
      output.show(organisation)
    },
  },
  'orgs list': {
    usage: 'orgs list',
    does: 'lists the organisations and their use of the month',
    async run({ db, clock, output }) {
      const organisations = await listOrganisations(db, clock)
      output.list(organisations, [
        'id',
        'name',
        'plan',
        'monthly_limit',
        'used',
        'resets_at',
        'retention_days',
        'suspended_at',
      ])
    },
  },
  'orgs set-plan': {
    usage: 'orgs set-plan ORG PLAN [--monthly-limit N]',
    does: "changes the plan; without --monthly-limit the plan's own limit holds",
    values: ['monthly-limit'],
    words: 2,
    check: limitOption,
    verifyWith: 'orgs list',
    async run({ db, clock, typed, output }) {
      const [org, plan] = typed.words as [string, string]
      output.show(await setPlan(db, clock, org, plan, limitOption(typed)))
    },
  },
  'orgs set-retention': {
    usage: 'orgs set-retention ORG DAYS|none',
    does: 'erases the signals of an organisation from now on when they are so many days old, or never',
    words: 2,
    check: retentionWord,
    verifyWith: 'orgs list',
    async run({ db, clock, typed, output }) {
      output.show(await setRetention(db, clock, typed.words[0] as string, retentionWord(typed)))
    },
  },
  'orgs suspend': {
    usage: 'orgs suspend ORG',
    does: 'rejects all keys of an organisation within a second; its data stays',
    words: 1,
    verifyWith: 'orgs list',
    async run({ db, clock, typed, output }) {
      output.show(await suspendOrganisation(db, clock, typed.words[0] as string))
    },
  },
  'orgs resume': {
    usage: 'orgs resume ORG',
    does: 'takes the keys of a suspended organisation again',
    words: 1,
    verifyWith: 'orgs list',
    async run({ db, clock, typed, output }) {
      output.show(await resumeOrganisation(db, clock, typed.words[0] as string))
    },
  },
})

/** A number of days, from 1 on and at most a century; null for none. */
function retentionWord({ words: [, days = ''] }: Typed): number | null {
  if (days === 'none') return null
  if (/^\d{1,5}$/.test(days) && Number(days) >= 1 && Number(days) <= 36_500) return Number(days)
  throw new UsageError(`DAYS must be a whole number from 1 to 36500, or none, not "${days}"`)
}
