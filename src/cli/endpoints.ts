import { operator } from '../audit/record.ts'
import { cursorParams, readAllPages } from '../lib/cursor_page.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { build, resolveName } from '../platform.ts'
import { listDeliveries, pingEndpoint, redeliver } from '../webhooks/deliveries.ts'
import {
  changeEndpoint,
  createEndpointInTransaction,
  listEndpoints,
  removeEndpoint,
  rotateEndpointInTransaction,
  showEndpoint,
  validateEndpointChange,
  validateNewEndpoint,
} from '../webhooks/endpoints.ts'
import { endpointKinds, endpointRotation } from '../webhooks/schema.ts'
import { createSender } from '../webhooks/send.ts'
import type { Arguments } from './command.ts'
import { onDatabase } from './database.ts'
import { type AnyColumn, minuteOf } from './output.ts'

const kindUsage = `[--kind ${endpointKinds.join('|')}]`
const keepItNow = 'Keep the secret now: it is not shown again.'
const verifyWith = 'endpoints list --org ORG'

export const commands = onDatabase([
  {
    usage: `endpoints create --org ORG --url URL ${kindUsage} [--events A,B] [--prompt PROMPT]…`,
    description: 'creates an endpoint that events are sent to; its secret is shown only once',
    check: (args) => newEndpoint(args),
    verifyWith,
    async run({ db, clock, config, args, output }) {
      const { id } = await requireOrganisation(db, args.required('org'))
      const [given, allowed] = [newEndpoint(args), config.WEBHOOK_ALLOWED_HOSTS]
      const make = db.transaction((sql) => createEndpointInTransaction(sql, clock, id, given, allowed, operator))
      output.show(await make)
      output.say(keepItNow)
    },
  },
  {
    usage: 'endpoints list --org ORG',
    description: 'lists the endpoints of an organisation',
    async run({ db, args, output }) {
      const { id } = await requireOrganisation(db, args.required('org'))
      const endpoints = await readAllPages((page) => listEndpoints(db, id, page))
      output.table(endpoints.toReversed(), columns)
    },
  },
  {
    usage: 'endpoints show ID',
    description: 'shows an endpoint',
    run: async ({ db, args, output }) => output.show(await showEndpoint(db, args.positional(0), operator)),
  },
  {
    usage: `endpoints update ID [--url URL] ${kindUsage} [--events A,B|all] [--prompt PROMPT|all]… [--enabled true|false]`,
    description: 'changes the given properties of an endpoint',
    check: (args) => endpointChange(args),
    verifyWith: 'endpoints show ID',
    run: async ({ db, clock, config, args, output }) =>
      output.show(
        await changeEndpoint(db, clock, args.positional(0), endpointChange(args), config.WEBHOOK_ALLOWED_HOSTS),
      ),
  },
  {
    usage: 'endpoints remove ID',
    description: 'removes an endpoint and its deliveries, also the pending ones',
    verifyWith,
    run: async ({ db, clock, args, output }) => output.show(await removeEndpoint(db, clock, args.positional(0))),
  },
  {
    usage: 'endpoints rotate ID [--overlap 24h]',
    description: 'generates a secret, which is shown only once; the old one signs too until the overlap ends',
    check: (args) => args.overlapMs(endpointRotation.maxDays),
    verifyWith: 'endpoints show ID',
    async run({ db, clock, args, output }) {
      const overlapMs = args.overlapMs(endpointRotation.maxDays)
      const rotate = db.transaction((sql) =>
        rotateEndpointInTransaction(sql, clock, args.positional(0), overlapMs, operator),
      )
      output.show(await rotate)
      output.say(keepItNow)
    },
  },
  {
    usage: 'endpoints test ID',
    description: 'sends a ping to an endpoint and shows the outcome',
    async run({ db, clock, config, args, output }) {
      const { PUBLIC_URL: publicUrl = '', WEBHOOK_ALLOWED_HOSTS: allowedHosts } = config
      const sendOnce = createSender({ version: build.version, publicUrl, allowedHosts, resolve: resolveName })
      output.show(await pingEndpoint(db, clock, sendOnce, args.positional(0), operator))
    },
  },
  {
    usage: 'endpoints deliveries ID [--limit N] [--cursor C]',
    description: 'lists the events that an endpoint was sent in the last 14 days, newest first',
    check: (args) => args.asQuery(cursorParams.parse),
    async run({ db, args, output }) {
      const page = args.asQuery(cursorParams.parse)
      const { data, nextCursor } = await listDeliveries(db, args.positional(0), page, operator)
      const times = ['created_at', 'next_attempt_at'] as const
      output.table(data, ['id', 'type', ...times, 'status', 'attempts', 'response_code', 'response_text…'])
      if (nextCursor) output.say(`There are older ones: --cursor ${nextCursor}`)
    },
  },
  {
    usage: 'endpoints redeliver ID EVENT',
    description: 'sends an event to an endpoint again',
    verifyWith: 'endpoints deliveries ID',
    run: async ({ db, clock, args, output }) =>
      output.show(await redeliver(db, clock, args.positional(0), args.positional(1))),
  },
])

type ListedEndpoint = Awaited<ReturnType<typeof listEndpoints>>['data'][number]

const columns: AnyColumn<ListedEndpoint>[] = [
  'id',
  'kind',
  'url…',
  { name: 'events', cell: ({ events }) => events?.join(',') ?? 'all', shrinks: true },
  { name: 'prompts', cell: ({ prompts }) => prompts?.join(',') ?? 'all', shrinks: true },
  { name: 'state', cell: stateOf },
]

function stateOf({ disabled_reason, disabled_at, failing_since_at }: ListedEndpoint): string {
  if (disabled_at) return `disabled ${minuteOf(disabled_at.toISOString())}: ${disabled_reason}`
  return failing_since_at ? `failing since ${minuteOf(failing_since_at.toISOString())}` : 'enabled'
}

const newEndpoint = (args: Arguments) => args.naming(() => validateNewEndpoint(givenOptions(args)))

const endpointChange = (args: Arguments) => args.naming(() => validateEndpointChange(givenOptions(args)))

/** The options in the form of a request's body. `all` becomes null. */
function givenOptions(args: Arguments) {
  const [events, prompts, enabled] = [args.names('events'), args.list('prompt'), args.given('enabled')]
  return {
    url: args.given('url'),
    kind: args.given('kind'),
    events: events?.join() === 'all' ? null : events,
    prompts: prompts?.join() === 'all' ? null : prompts,
    enabled: enabled && enabled === 'true',
  }
}
