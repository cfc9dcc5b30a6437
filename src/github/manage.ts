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
): Promise<{ org: string; path: string; secret: string }> {
  const { id } = await requireOrganisation(db, org)
  const secret = randomBase62(secretLength)
  await upsertWebhook(db.sql, id, secret, clock.now())
  return { org, path: `/webhooks/github/${org}`, secret }
}
