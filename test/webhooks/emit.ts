import type { Db } from '../../src/db/client.ts'
import { requireOrganisation } from '../../src/orgs/manage.ts'
import { emitEvent } from '../../src/webhooks/events.ts'
import type { TestService } from '../service.ts'

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

let events = 0

/** Writes an event for the endpoints of an organisation. Returns its id, if one of them is enabled. */
export async function emit({ services: { db, clock } }: TestService, org: string): Promise<string> {
  const { id: organisationId } = await requireOrganisation(db, org)
  const once = `test ${events++}`
  await emitEvent(db.sql, { organisationId, type: 'ping', once, data: {}, now: clock.now() })
  const [row] = await db.sql<{ id: string }>`
    select public_id as id from webhook_events where organisation_id = ${organisationId} and once = ${once}`
  return row?.id as string
}

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
