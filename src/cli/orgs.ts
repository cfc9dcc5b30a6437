import { eraseTexts } from '../history/erase.ts'
import {
  createOrganisation,
  listOrganisations,
  type Plan,
  plans,
  requireOrganisation,
  setPlan,
  setRetention,
  setStoreText,
  setSuspended,
} from '../orgs/manage.ts'
import { type Arguments, UsageError } from './command.ts'
import { onDatabase } from './database.ts'

const planNames = Object.keys(plans)

const limitOption = (args: Arguments) => args.integer('monthly-limit', 0)

export const commands = onDatabase([
  {
    usage: `orgs create --name N --plan ${planNames.join('|')} [--monthly-limit N]`,
    description: 'creates an organisation',
    database: 'created',
    check: limitOption,
    async run({ db, clock, args, output }) {
      const [name, plan] = [args.required('name'), args.required('plan') as Plan]
      output.show(await createOrganisation(db, clock, { name, plan, monthlyLimit: limitOption(args) }))
    },
  },
  {
    usage: 'orgs list',
    description: 'lists the organisations and their usage of the month',
    async run({ db, clock, output }) {
      const more = [
        'plan',
        'monthly_limit',
        'used',
        'resets_at',
        'retention_days',
        'store_text',
        'suspended_at',
      ] as const
      output.table(await listOrganisations(db, clock), ['id', 'name…', ...more])
    },
  },
  {
    usage: 'orgs set-plan ORG PLAN [--monthly-limit N]',
    description: "changes the plan; without --monthly-limit the plan's limit applies",
    check: (args) => [planWord(args), limitOption(args)],
    run: async ({ db, clock, args, output }) =>
      output.show(await setPlan(db, clock, args.positional(0), planWord(args), limitOption(args))),
  },
  {
    usage: 'orgs set-retention ORG DAYS|none',
    description: 'sets after how many days the signals of an organisation are erased; none keeps them forever',
    check: daysWord,
    run: async ({ db, clock, args, output }) =>
      output.show(await setRetention(db, clock, args.positional(0), daysWord(args))),
  },
  {
    usage: 'orgs update ORG --store-text on|off',
    description: 'allows storing the texts of prompts, or not; off erases them',
    ifInterrupted: 'Run it again to erase the rest of the texts.',
    async run({ db, clock, args, output }) {
      const org = args.positional(0)
      const shown = await setStoreText(db, clock, org, args.required('store-text') === 'on')
      if (!shown.store_text) await eraseTexts(db, (await requireOrganisation(db, org)).organisationId)
      output.show(shown)
    },
  },
  {
    usage: 'orgs suspend ORG',
    description: 'rejects all keys of an organisation within a second and sends it no events; its data stays',
    run: async ({ db, clock, args, output }) => output.show(await setSuspended(db, clock, args.positional(0), true)),
  },
  {
    usage: 'orgs resume ORG',
    description: 'accepts the keys of a suspended organisation again',
    run: async ({ db, clock, args, output }) => output.show(await setSuspended(db, clock, args.positional(0), false)),
  },
])

function planWord(args: Arguments): Plan {
  const plan = args.positional(1)
  if (planNames.includes(plan)) return plan as Plan
  throw new UsageError(`PLAN must be one of ${planNames.join(', ')}, not "${plan}"`)
}

function daysWord(args: Arguments): number | null {
  const days = args.positional(1)
  if (days === 'none') return null
  if (/^\d{1,5}$/.test(days) && Number(days) >= 1 && Number(days) <= 36_500) return Number(days)
  throw new UsageError(`DAYS must be a whole number from 1 to 36500, or none, not "${days}"`)
}
