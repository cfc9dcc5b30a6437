import { expect, test } from 'bun:test'
import type { Db } from '../../src/db/client.ts'
import { requireWebhook } from '../../src/github/verify.ts'

/** A database whose answers have come out of step: this is one to an earlier question. */
const outOfStep = { sql: async () => [{ org: 'org_other', organisationId: 2, secret: 'theirs' }] } as unknown as Db

test('the webhook of another organisation authenticates nobody, even when the database answers with it', async () => {
  expect(await requireWebhook(outOfStep, 'org_mine').catch((error) => error.code)).toBe('unauthorized')
})
