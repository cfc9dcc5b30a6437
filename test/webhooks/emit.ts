// Events and endpoints without the interface, and deliveries without a service and without HTTP.
import { systemClock } from '../../src/clock.ts'
import type { Db } from '../../src/db/client.ts'
import { requireOrganisation } from '../../src/orgs/manage.ts'
import { startDeliveries } from '../../src/webhooks/deliver.ts'
import { emitEvent } from '../../src/webhooks/events.ts'
import type { TestService } from '../service.ts'
import { insertTenant } from '../tenant.ts'

type Chosen = { number?: number; url?: string; events?: string[] | null; prompts?: string[] | null }

/** Creates endpoints of an organisation, of which it may have more than the interface allows. */
export async function insertEndpoints(db: Db, org: string, chosen: Chosen = {}): Promise<void> {
  const { number = 1, url = 'https://example.com', events = null, prompts = null } = chosen
  await db.sql`
    insert into webhook_endpoints (public_id, organisation_id, kind, url, events, prompts, secret, created_at)
    select 'whe_' || md5(gen_random_uuid()::text), o.id, 'webhook', ${url}, ${events}::text[], ${prompts}::text[], 'whsec_x', now()
    from organisations o, generate_series(1, ${number}::integer)
    where o.public_id = ${org}`
}

/** An organisation with this many endpoints. */
export async function addEndpoints(db: Db, number: number, url: string): Promise<string> {
  const { org } = await insertTenant(db, systemClock)
  await insertEndpoints(db, org, { number, url })
  return org
}

let events = 0

/** Writes an event for the endpoints of an organisation, after `attempts`. Returns its id, if one of them is enabled. */
export async function emitOn(db: Db, org: string, attempts = 0): Promise<string> {
  const { organisationId } = await requireOrganisation(db, org)
  const dedupKey = `test ${events++}`
  return db.transaction(async (sql) => {
    await emitEvent(sql, { organisationId, type: 'ping', dedupKey, data: {}, now: new Date() })
    const [row] = await sql<{ id: string; rowId: number }>`
      select public_id as id, id as "rowId" from webhook_events
      where organisation_id = ${organisationId} and dedup_key = ${dedupKey}`
    await sql`update webhook_deliveries set attempts = ${attempts} where event_id = ${row?.rowId ?? null}`
    return row?.id as string
  })
}

export const emit = ({ services: { db } }: TestService, org: string) => emitOn(db, org)

type Attempted = { status: 'delivered' | 'failed'; attempts: number; code: number; text: string }

/** Sets the outcome of a delivery, after which nothing is sent. */
export async function setOutcome({ services: { db } }: TestService, event: string, outcome: Attempted): Promise<void> {
  await db.sql`
    update webhook_deliveries d
    set status = ${outcome.status}, attempts = ${outcome.attempts}, next_attempt_at = null,
      last_attempt_at = '2026-11-10T12:00:00Z', response_code = ${outcome.code}, response_text = ${outcome.text}
    from webhook_events v
    where v.id = d.event_id and v.public_id = ${event}`
}

/** A replica whose attempts a test answers. `sent` has the URL and the event's id of each. */
export function startDeliverer(db: Db, answer: (url: string) => Promise<number>) {
  const [sent, failures]: [{ url: string; id: string }[], unknown[]] = [[], []]
  const { stop } = startDeliveries({
    db,
    clock: systemClock,
    async sendOnce({ url }, { id }, _at, stopped) {
      sent.push({ url, id })
      const aborted = new Promise<never>((_, reject) => stopped?.addEventListener('abort', reject))
      return { code: await Promise.race([answer(url), aborted]), text: '', retryAfter: undefined }
    },
    observer: { attempted() {}, disabled() {}, measured() {} },
    isStopping: () => false,
    onFailure: (error) => failures.push(error),
  })
  return { sent, failures, stop }
}
