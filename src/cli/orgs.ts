import {
  createOrganisation,
  listOrganisations,
  resumeOrganisation,
  setPlan,
  suspendOrganisation,
} from '../orgs/manage.ts'
import { integerOption, requiredOption, type Typed } from './command.ts'
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
      output.list(organisations, ['id', 'name', 'plan', 'monthly_limit', 'used', 'resets_at', 'suspended_at'])
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
  'orgs suspend': {
    usage: 'orgs suspend ORG',
    does: 'refuses all keys of an organisation within a second; its data stays',
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
