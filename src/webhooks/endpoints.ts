// The endpoints of an organisation. A secret is returned only by the function that generates it.
import { randomBytes } from 'node:crypto'
import { type Actor, operator, permitRequestOf, recordAudit, requireOwn, type Viewer } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { type Detail, invalid } from '../errors.ts'
import { randomBase62 } from '../lib/base62.ts'
import { type PageRequest, readPage } from '../lib/cursor_page.ts'
import type { HostList } from '../lib/hosts.ts'
import { bodyOf, changeOf } from '../lib/validate.ts'
import { findOwnPrompts } from '../prompts/find.ts'
import { maskUrl, parseEndpointUrl } from './reachable.ts'
import { EndpointChange, type EndpointRow, NewEndpoint } from './schema.ts'
import {
  countEndpoints,
  deleteEndpoint,
  type EndpointValues,
  findEndpoint,
  insertEndpoint,
  lockEndpoint,
  lockEndpoints,
  replaceSecret,
  type StoredEndpoint,
  selectEndpoints,
  updateEndpoint,
} from './store.ts'

const maxEndpoints = 20

export type EndpointWithSecret = EndpointRow & { secret: string }

export const newEndpointBody = bodyOf(NewEndpoint, 'The endpoint')
export const endpointChangeBody = changeOf(EndpointChange)

export const createEndpoint = (
  db: Db,
  clock: Clock,
  organisationId: number,
  given: NewEndpoint,
  allowedHosts: HostList | undefined,
  actor: Actor,
): Promise<EndpointWithSecret> =>
  db.transaction(
    (sql) => createInTransaction(sql, clock, organisationId, given, allowedHosts, actor),
    permitRequestOf(actor),
  )

async function createInTransaction(
  sql: Sql,
  clock: Clock,
  organisationId: number,
  { enabled = true, kind = 'webhook', url, events = null, prompts = null }: NewEndpoint,
  allowedHosts: HostList | undefined,
  actor: Actor,
): Promise<EndpointWithSecret> {
  const now = clock.now()
  const state = { ...enabledState, ...(enabled ? {} : disabledState(now)) }
  const values = await parseValues(sql, organisationId, { kind, url, events, prompts }, allowedHosts)
  await lockEndpoints(sql, organisationId)
  if ((await countEndpoints(sql, organisationId)) >= maxEndpoints) {
    const message = `must be one of at most ${maxEndpoints} endpoints`
    throw invalid(`The organisation has ${maxEndpoints} endpoints. Remove one first.`, [{ path: '', message }])
  }
  const [id, secret] = [`whe_${randomBase62(16)}`, generateSecret()]
  const made = { ...values, ...state, id, organisationId, created_at: now, old_secret_ends_at: null }
  await insertEndpoint(sql, { ...made, secret })
  const endpoint = show(made)
  await recordAudit(sql, clock, actor, auditOf('endpoint.created', organisationId, endpoint))
  return { ...endpoint, secret }
}

export const listEndpoints = async (db: Db, organisationId: number, request: PageRequest) => {
  const page = await readPage<Omit<StoredEndpoint, 'rowId'>>(
    `endpoints ${organisationId}`,
    request,
    (beforeId, limit) => selectEndpoints(db.sql, organisationId, beforeId, limit),
  )
  return { ...page, data: page.data.map(show) }
}

export const showEndpoint = async (db: Db, id: string, viewer: Viewer): Promise<EndpointRow> =>
  show(await requireEndpoint(db.sql, id, viewer))

/** Changes what is given of an endpoint. Enabling it clears its failures. */
export const changeEndpoint = (
  db: Db,
  clock: Clock,
  id: string,
  { enabled, ...given }: EndpointChange,
  allowedHosts: HostList | undefined,
  actor = operator,
): Promise<EndpointRow> =>
  db.transaction(async (sql) => {
    const endpoint = await requireEndpoint(sql, id, actor, lockEndpoint)
    const { organisationId } = endpoint
    const values = await parseValues(sql, organisationId, given, allowedHosts, endpoint)
    const isNowDisabled = enabled === false && endpoint.disabled_at === null
    const state = enabled ? enabledState : isNowDisabled ? disabledState(clock.now()) : {}
    const changed = { ...endpoint, ...values, ...state }
    await updateEndpoint(sql, id, changed)
    const shown = show(changed)
    await recordAudit(sql, clock, actor, auditOf('endpoint.updated', organisationId, shown))
    return shown
  }, permitRequestOf(actor))

/** Removes an endpoint with its deliveries. */
export const removeEndpoint = (db: Db, clock: Clock, id: string, actor = operator): Promise<{ id: string }> =>
  db.transaction(async (sql) => {
    const endpoint = await requireEndpoint(sql, id, actor, lockEndpoint)
    await deleteEndpoint(sql, id)
    await recordAudit(sql, clock, actor, auditOf('endpoint.removed', endpoint.organisationId, show(endpoint)))
    return { id }
  }, permitRequestOf(actor))

/** Generates a secret. Both secrets sign until the overlap ends. */
export const rotateEndpoint = (
  db: Db,
  clock: Clock,
  id: string,
  overlapMs: number,
  actor: Actor,
): Promise<EndpointWithSecret> =>
  db.transaction(async (sql) => {
    const endpoint = await requireEndpoint(sql, id, actor, lockEndpoint)
    const secret = generateSecret()
    const endsAt = overlapMs > 0 ? new Date(clock.now().getTime() + overlapMs) : null
    await replaceSecret(sql, id, secret, endsAt)
    const { organisationId } = endpoint
    const details = { old_secret_ends_at: endsAt }
    await recordAudit(sql, clock, actor, { organisationId, action: 'endpoint.rotated', subject: id, details })
    return { ...show(endpoint), ...details, secret }
  }, permitRequestOf(actor))

export const requireEndpoint = (sql: Sql, id: string, viewer: Viewer, lock?: typeof lockEndpoint) =>
  requireOwn('endpoint', id, viewer, async () => {
    await lock?.(sql, id)
    return findEndpoint(sql, id)
  })

type Chosen = Pick<EndpointValues, 'kind' | 'fullUrl' | 'events' | 'prompts'>
const noneChosen: Chosen = { kind: 'webhook', fullUrl: '', events: null, prompts: null }

/** Checks only what is given: an endpoint can be disabled also when its host or a prompt is no longer valid. */
async function parseValues(
  sql: Sql,
  organisationId: number,
  given: Omit<EndpointChange, 'enabled'>,
  allowedHosts: HostList | undefined,
  stored = noneChosen,
): Promise<Chosen> {
  const problems: Detail[] = []
  const { kind = stored.kind, url } = given
  const fullUrl = url === undefined ? stored.fullUrl : parseEndpointUrl({ url, kind }, allowedHosts)
  if (typeof fullUrl !== 'string') problems.push(fullUrl)
  // As a webhook's, the URL of a chat would be shown.
  if (url === undefined && kind !== stored.kind)
    problems.push({ path: '/url', message: 'must be given with another kind' })
  const { prompts = stored.prompts, events = stored.events } = given
  const own = await findOwnPrompts(sql, organisationId, given.prompts ?? [])
  for (const [index, prompt] of (given.prompts ?? []).entries()) {
    if (!own.has(prompt)) problems.push({ path: `/prompts/${index}`, message: 'must be a prompt of the organisation' })
  }
  if (problems.length > 0) throw invalid('The endpoint is not valid.', problems.slice(0, 10))
  return {
    kind,
    fullUrl: fullUrl as string,
    events: events && [...new Set(events)],
    prompts: prompts && [...new Set(prompts)],
  }
}

const generateSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

const enabledState = { disabled_at: null, disabled_reason: null, failing_since_at: null }

const disabledState = (at: Date) => ({ disabled_at: at, disabled_reason: 'requested' }) as const

/** Only this function knows what of an endpoint may be shown. */
function show(endpoint: Omit<StoredEndpoint, 'rowId'>): EndpointRow {
  const { id, kind, fullUrl, events, prompts, disabled_at, disabled_reason, failing_since_at } = endpoint
  const { old_secret_ends_at, created_at } = endpoint
  const url = maskUrl({ url: fullUrl, kind })
  const enabled = disabled_at === null
  const state = { enabled, disabled_reason, disabled_at, failing_since_at, old_secret_ends_at, created_at }
  return { id, kind, url, events, prompts, ...state }
}

function auditOf(
  action: 'endpoint.created' | 'endpoint.updated' | 'endpoint.removed',
  organisationId: number,
  { id: subject, kind, url, events, prompts, enabled }: EndpointRow,
) {
  return { organisationId, action, subject, details: { kind, url, events, prompts, enabled } }
}
