// The endpoints of an organisation and their deliveries. A secret is returned only by the function that generates it.
import { randomBytes } from 'node:crypto'
import { type Actor, permitRequestOf, recordAudit, requireOwn, type Viewer } from '../audit/record.ts'
import type { AuditEvent } from '../audit/schema.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { type Detail, invalid, ServiceError } from '../errors.ts'
import { randomBase62 } from '../lib/base62.ts'
import { type PageRequest, readPage } from '../lib/cursor_page.ts'
import type { HostList } from '../lib/hosts.ts'
import { bodyOf, changeOf } from '../lib/validate.ts'
import { findForeignPrompts } from '../prompts/find.ts'
import { isDelivered } from './deliver.ts'
import { createEventId } from './events.ts'
import { maskUrl, parseEndpointUrl } from './reachable.ts'
import { type DeliveryRow, EndpointChange, type EndpointRow, NewEndpoint } from './schema.ts'
import type { SendOnce } from './send.ts'
import {
  deleteEndpoint,
  type EndpointValues,
  findEndpoint,
  insertEndpoint,
  lockEndpoint,
  lockEndpoints,
  replaceSecret,
  restartDelivery,
  type StoredEndpoint,
  selectDeliveries,
  selectEndpoints,
  sendPending,
  updateEndpoint,
} from './store.ts'
import { forgetUnwatched } from './store_announce.ts'

const maxEndpoints = 20

type EndpointWithSecret = EndpointRow & { secret: string }

export const newEndpointBody = bodyOf(NewEndpoint, 'The endpoint')
export const endpointChangeBody = changeOf(EndpointChange)

export const createEndpoint = (
  db: Db,
  clock: Clock,
  organisationId: number,
  { enabled = true, kind = 'webhook', url, events = null, prompts = null }: NewEndpoint,
  allowedHosts: HostList | undefined,
  actor: Actor,
): Promise<EndpointWithSecret> =>
  db.transaction(async (sql) => {
    const now = clock.now()
    const state = { ...enabledState, ...(enabled ? {} : disabledState(now)) }
    const values = await parseValues(sql, organisationId, { kind, url, events, prompts }, allowedHosts)
    await lockEndpoints(sql, organisationId)
    if ((await selectEndpoints(sql, organisationId, Number.MAX_SAFE_INTEGER, maxEndpoints)).length === maxEndpoints) {
      const message = `must be one of at most ${maxEndpoints} endpoints`
      throw invalid(`The organisation has ${maxEndpoints} endpoints. Remove one first.`, [{ path: '', message }])
    }
    const [id, secret] = [`whe_${randomBase62(16)}`, generateSecret()]
    const made = { ...values, ...state, id, organisationId, created_at: now, old_secret_ends_at: null }
    await forgetUnwatched(sql, organisationId)
    await insertEndpoint(sql, { ...made, secret })
    const endpoint = show(made)
    const event = { organisationId, action: 'endpoint.created', subject: id, details: detailsOf(endpoint) } as const
    await recordAudit(sql, clock, actor, event)
    return { ...endpoint, secret }
  }, permitRequestOf(actor))

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

export const requireEndpoint = (sql: Sql, id: string, viewer: Viewer, lock?: typeof lockEndpoint) =>
  requireOwn('endpoint', id, viewer, async () => {
    await lock?.(sql, id)
    return findEndpoint(sql, id)
  })

type Change<T> = Required<Pick<AuditEvent, 'action' | 'details'>> & { answer: T }

/** Changes a locked endpoint, and records it in the audit log. */
const changeLocked = <T>(
  db: Db,
  clock: Clock,
  id: string,
  actor: Actor,
  change: (sql: Sql, endpoint: StoredEndpoint) => Promise<Change<T>>,
): Promise<T> =>
  db.transaction(async (sql) => {
    const endpoint = await requireEndpoint(sql, id, actor, lockEndpoint)
    const { answer, action, details } = await change(sql, endpoint)
    const { organisationId } = endpoint
    await recordAudit(sql, clock, actor, { organisationId, action, subject: id, details })
    return answer
  }, permitRequestOf(actor))

/** Changes what is given of an endpoint. Enabling it clears its failures, and sends what was pending while it was disabled. */
export const changeEndpoint = (
  db: Db,
  clock: Clock,
  id: string,
  { enabled, ...given }: EndpointChange,
  allowedHosts: HostList | undefined,
  actor: Actor,
): Promise<EndpointRow> =>
  changeLocked(db, clock, id, actor, async (sql, endpoint) => {
    const values = await parseValues(sql, endpoint.organisationId, given, allowedHosts, endpoint)
    const isNowDisabled = enabled === false && endpoint.disabled_at === null
    const state = enabled ? enabledState : isNowDisabled ? disabledState(clock.now()) : {}
    const changed = { ...endpoint, ...values, ...state }
    await forgetUnwatched(sql, endpoint.organisationId)
    await updateEndpoint(sql, id, changed)
    if (enabled && endpoint.disabled_at) await sendPending(sql, endpoint)
    const answer = show(changed)
    return { answer, action: 'endpoint.updated', details: detailsOf(answer) }
  })

export const removeEndpoint = (db: Db, clock: Clock, id: string, actor: Actor): Promise<{ id: string }> =>
  changeLocked(db, clock, id, actor, async (sql, endpoint) => {
    await deleteEndpoint(sql, id)
    return { answer: { id }, action: 'endpoint.removed', details: detailsOf(show(endpoint)) }
  })

/** Generates a secret. The old ones sign too until the overlap ends. */
export const rotateEndpoint = (
  db: Db,
  clock: Clock,
  id: string,
  overlapMs: number,
  actor: Actor,
): Promise<EndpointWithSecret> =>
  changeLocked(db, clock, id, actor, async (sql, endpoint) => {
    const secret = generateSecret()
    const details = { old_secret_ends_at: overlapMs > 0 ? new Date(clock.now().getTime() + overlapMs) : null }
    await replaceSecret(sql, id, secret, details.old_secret_ends_at)
    return { answer: { ...show(endpoint), ...details, secret }, action: 'endpoint.rotated', details }
  })

/** The deliveries of an endpoint, newest event first. */
export async function listDeliveries(db: Db, endpointId: string, request: PageRequest, viewer: Viewer) {
  const endpoint = await requireEndpoint(db.sql, endpointId, viewer)
  return readPage<DeliveryRow>(`deliveries ${endpoint.rowId}`, request, (beforeId, limit) =>
    selectDeliveries(db.sql, endpoint, beforeId, limit),
  )
}

/** Sends an event again, with every attempt that a new one has. */
export const redeliver = (db: Db, clock: Clock, id: string, event: string, actor: Actor): Promise<DeliveryRow> =>
  changeLocked(db, clock, id, actor, async (sql, endpoint) => {
    if (endpoint.disabled_at) {
      const message = 'must be enabled'
      throw invalid('The endpoint is disabled.', [{ path: 'endpoint_id', message }])
    }
    const answer = isEventId(event) ? await restartDelivery(sql, endpoint, event) : undefined
    if (!answer) throw new ServiceError('not_found', `There is no delivery ${event} of this endpoint.`)
    return { answer, action: 'endpoint.redelivered', details: { event } }
  })

const isEventId = (text: string): boolean => /^msg_[0-9A-Za-z]{1,64}$/.test(text)

/** Sends a ping once, also to a disabled endpoint, and returns the outcome. Nothing is stored. */
export async function pingEndpoint(db: Db, clock: Clock, sendOnce: SendOnce, endpointId: string, viewer: Viewer) {
  const { kind, fullUrl: url, secrets } = await requireEndpoint(db.sql, endpointId, viewer)
  const now = clock.now()
  const id = createEventId()
  const reply = await sendOnce({ kind, url, secrets }, { id, type: 'ping', timestamp: now, data: {} }, now)
  return { id, delivered: isDelivered(reply), response_code: reply.code, response_text: reply.text }
}

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
  problems.push(...(await findForeignPrompts(sql, organisationId, given.prompts ?? [])))
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

/** What the audit log says of an endpoint. */
const detailsOf = ({ kind, url, events, prompts, enabled }: EndpointRow) => ({ kind, url, events, prompts, enabled })
