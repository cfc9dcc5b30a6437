// Commands that call one operation each: a usage line, and how people see the answer.
import { auditOperations } from '../audit/operations.ts'
import { systemClock } from '../clock.ts'
import { githubOperations } from '../github/operations.ts'
import { keyOperations } from '../keys/operations.ts'
import type { KeyRow } from '../keys/schema.ts'
import { presetOf, presets, type Scope } from '../lib/scopes.ts'
import { number } from '../lib/texts.ts'
import { endpointOperations } from '../webhooks/operations.ts'
import { type EndpointRow, endpointKinds } from '../webhooks/schema.ts'
import { fromOperations } from './operation_command.ts'
import { type AnyColumn, minuteOf } from './output.ts'

const scopeUsage = `[--preset ${Object.keys(presets).join('|')}] [--scopes A,B]`
const kindUsage = `[--kind ${endpointKinds.join('|')}]`
const keepKey = 'Keep the key now: it is not shown again.'
const keepSecret = 'Keep the secret now: it is not shown again.'

/** A row as JSON has it. */
type Shown<Row> = { [Name in keyof Row]: Row[Name] extends Date | null ? string | null : Row[Name] }

const keyColumns: AnyColumn<Shown<KeyRow>>[] = [
  'id',
  'name…',
  'prefix',
  { name: 'scopes', cell: ({ scopes }) => presetOf(scopes as Scope[]) ?? scopes.join(','), shrinks: true },
  { name: 'restricted to', cell: describeRestrictions, shrinks: true },
  'last_used_at',
  { name: 'state', cell: stateOfKey },
]

function describeRestrictions({ origins, prompts, monthly_limit }: Shown<KeyRow>): string {
  const limit = monthly_limit === null ? [] : [`${number(monthly_limit)} per month`]
  return [...(origins ?? []), ...(prompts ?? []), ...limit].join(', ') || '-'
}

function stateOfKey({ revoked_at, expires_at }: Shown<KeyRow>): string {
  if (revoked_at) return `revoked ${minuteOf(revoked_at)}`
  if (!expires_at) return 'active'
  return `${Date.parse(expires_at) > systemClock.now().getTime() ? 'expires' : 'expired'} ${minuteOf(expires_at)}`
}

const endpointColumns: AnyColumn<Shown<EndpointRow>>[] = [
  'id',
  'kind',
  'url…',
  { name: 'events', cell: ({ events }) => events?.join(',') ?? 'all', shrinks: true },
  { name: 'prompts', cell: ({ prompts }) => prompts?.join(',') ?? 'all', shrinks: true },
  { name: 'state', cell: stateOfEndpoint },
]

function stateOfEndpoint({ disabled_reason, disabled_at, failing_since_at }: Shown<EndpointRow>): string {
  if (disabled_at) return `disabled ${minuteOf(disabled_at)}: ${disabled_reason}`
  return failing_since_at ? `failing since ${minuteOf(failing_since_at)}` : 'enabled'
}

const operations = [...keyOperations, ...endpointOperations, ...auditOperations, ...githubOperations]

export const commands = fromOperations(operations, [
  {
    usage: `keys create --org ORG|--url URL [--name N] ${scopeUsage} [--expires-at TIME] [--origin O]… [--prompt PROMPT]… [--monthly-limit N]`,
    description:
      'creates an API key; it is shown only once. A browser key needs an --origin and may have its own limits',
    operation: 'createKey',
    defaults: { name: 'default' },
    note: keepKey,
  },
  {
    usage: 'keys list --org ORG|--url URL',
    description: 'lists the keys of an organisation',
    operation: 'listKeys',
    showsAll: true,
    columns: keyColumns,
  },
  {
    usage: `keys update ID [--url URL] [--name N] ${scopeUsage} [--add-scope A,B] [--remove-scope A,B] [--expires-at TIME|none] [--origin O]… [--prompt PROMPT|all]… [--monthly-limit N|none]`,
    description: 'changes the given properties of a key; effective everywhere within a second',
    operation: 'changeKey',
  },
  {
    usage: 'keys revoke ID [--url URL]',
    description: 'revokes a key: it is rejected everywhere within a second',
    operation: 'revokeKey',
  },
  {
    usage: 'keys rotate ID [--url URL] [--overlap 24h]',
    description:
      'creates a key that replaces another; the old key works until the overlap ends. The new key is shown only once',
    operation: 'rotateKey',
    note: keepKey,
  },
  {
    usage: `endpoints create --org ORG --url URL ${kindUsage} [--events A,B] [--prompt PROMPT]…`,
    description: 'creates an endpoint that events are sent to; its secret is shown only once',
    operation: 'createEndpoint',
    note: keepSecret,
  },
  {
    usage: 'endpoints list --org ORG|--url URL',
    description: 'lists the endpoints of an organisation',
    operation: 'listEndpoints',
    showsAll: true,
    columns: endpointColumns,
  },
  {
    usage: 'endpoints show ENDPOINT [--url URL]',
    description: 'shows an endpoint',
    operation: 'getEndpoint',
  },
  {
    usage: `endpoints update ENDPOINT [--url URL] ${kindUsage} [--events A,B|all] [--prompt PROMPT|all]… [--enabled true|false]`,
    description: 'changes the given properties of an endpoint',
    operation: 'changeEndpoint',
  },
  {
    usage: 'endpoints remove ENDPOINT [--url URL]',
    description: 'removes an endpoint and its deliveries, also the pending ones',
    operation: 'removeEndpoint',
  },
  {
    usage: 'endpoints rotate ENDPOINT [--url URL] [--overlap 24h]',
    description: 'generates a secret, which is shown only once; the old one signs too until the overlap ends',
    operation: 'rotateEndpoint',
    note: keepSecret,
  },
  {
    usage: 'endpoints test ENDPOINT [--url URL]',
    description: 'sends a ping to an endpoint and shows the outcome',
    operation: 'testEndpoint',
    judge(_, { delivered }) {
      if (!delivered) throw new Error('The receiver did not accept the ping.')
    },
  },
  {
    usage: 'endpoints deliveries ENDPOINT [--url URL] [--limit N] [--cursor C]',
    description: 'lists the events that an endpoint was sent in the last 32 days, newest first',
    operation: 'listDeliveries',
    columns: ['id', 'type', 'created_at', 'next_attempt_at', 'status', 'attempts', 'response_code', 'response_text…'],
  },
  {
    usage: 'endpoints redeliver ENDPOINT EVENT [--url URL]',
    description: 'sends an event to an endpoint again',
    operation: 'redeliver',
  },
  {
    usage: 'audit list --org ORG|--url URL [--limit N] [--cursor C]',
    description: 'lists who changed keys, plans, prompts and webhooks of an organisation, newest first',
    operation: 'listAudit',
    columns: ['created_at', 'actor', 'action', 'subject…', 'details…'],
  },
  {
    usage: 'webhooks github set --org ORG|--url URL',
    description: "creates the secret of an organisation's GitHub webhook; it is shown only once",
    operation: 'setGithubWebhook',
    note: 'Save the secret: it is not shown again. Events signed with an earlier secret are rejected.',
  },
])
