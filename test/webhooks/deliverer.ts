// Deliveries without a service and without HTTP: a test decides when and how each attempt is answered.
import { systemClock } from '../../src/clock.ts'
import type { Db } from '../../src/db/client.ts'
import { startDeliveries } from '../../src/webhooks/deliver.ts'
import type { Receiver } from '../../src/webhooks/send.ts'
import type { TestService } from '../service.ts'
import { insertTenant } from '../tenant.ts'
import { emit, insertEndpoints } from './emit.ts'

/** An organisation with this many endpoints. */
export async function addEndpoints(db: Db, number: number, url: string): Promise<string> {
  const { org } = await insertTenant(db, systemClock)
  await insertEndpoints(db, org, { number, url })
  return org
}

/** Writes an event for every endpoint of an organisation. Returns its id. */
export const emitOn = (db: Db, org: string): Promise<string> =>
  emit({ services: { db, clock: systemClock } } as TestService, org)

/** `sent` has the URL and the event's id of each attempt. */
export function startDeliverer(db: Db, answer: (url: string) => Promise<void>) {
  const [sent, failures]: [{ url: string; id: string }[], unknown[]] = [[], []]
  const { stop } = startDeliveries({
    db,
    clock: systemClock,
    async sendOnce({ url }: Receiver, { id }, _at, stopped) {
      sent.push({ url, id })
      await Promise.race([answer(url), new Promise((_, reject) => stopped?.addEventListener('abort', reject))])
      return { code: 204, text: '', retryAfter: undefined }
    },
    observer: { attempted() {}, disabled() {}, measured() {} },
    isStopping: () => false,
    onFailure: (error) => failures.push(error),
  })
  return { sent, failures, stop }
}
