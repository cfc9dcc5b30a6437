import { Elysia } from 'elysia'
import { keyHolder } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { ServiceError } from '../errors.ts'
import type { RouteWrapper } from '../http/answer.ts'
import { describeOperation } from '../http/describe.ts'
import { listOrganisations } from '../orgs/manage.ts'
import { showKey } from './manage.ts'
import { OwnApiKey } from './schema.ts'
import type { Caller } from './verify.ts'

const showing = describeOperation({
  id: 'getOwnKey',
  tag: 'Keys',
  summary: 'Show the key of this request',
  description:
    'What the key that is sent may do, until when, and for which organisation: for a program that has been given a key. ' +
    'It needs no scope; what the organisation has used of its month is shown to a key with usage:read. A browser key is ' +
    'shown nothing.',
  success: { status: 200, description: 'The key, without its text.', schema: OwnApiKey },
  errors: [401, 403, 500],
})

/** The route by which a caller learns what its own key is. */
export const ownKeyRoutes = ({ db, clock }: { db: Db; clock: Clock }, { authenticated }: RouteWrapper) =>
  new Elysia({ name: 'own key' }).get(
    '/api/v1/key',
    authenticated(null, async (exchange, _: object, caller) => {
      // Anybody who opens a page can read its key, and is to learn nothing of the organisation by it.
      if (caller.browser) throw new ServiceError('forbidden', 'A browser key records signals, and nothing else.')
      return exchange.reply(200, JSON.stringify({ data: await describeCaller(db, clock, caller) }))
    }),
    { detail: showing },
  )

async function describeCaller(db: Db, clock: Clock, caller: Caller) {
  const [key, [organisation]] = await Promise.all([
    showKey(db, caller.key, keyHolder(caller)),
    listOrganisations(db, clock, caller.org),
  ])
  const { id, name, plan, monthly_limit: limit, used, resets_at } = organisation as NonNullable<typeof organisation>
  const usage = caller.scopes.includes('usage:read') ? { used, limit, resets_at } : null
  return { ...key, organisation: { id, name, plan }, usage }
}
