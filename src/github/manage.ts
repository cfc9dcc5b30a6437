import { type Actor, operator, permitRequestOf, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { randomBase62 } from '../lib/base62.ts'
import { requireOrganisation } from '../orgs/manage.ts'
import { upsertWebhook } from './store.ts'

/** 256 bits of randomness and a little more. */
const secretLength = 43

/** Makes the secret of an organisation's webhook, in place of an earlier one; it is not shown again. */
export async function setWebhook(
  db: Db,
  clock: Clock,
  org: string,
  actor: Actor = operator,
): Promise<{ org: string; path: string; secret: string }> {
  const { id: organisationId } = await requireOrganisation(db, org)
  const secret = randomBase62(secretLength)
  await db.transaction(async (sql) => {
    await upsertWebhook(sql, organisationId, secret, clock.now())
    await recordAudit(sql, clock, actor, { organisationId, action: 'webhook.secret_set', subject: org })
  }, permitRequestOf(actor))
  return { org, path: `/webhooks/github/${org}`, secret }
}
