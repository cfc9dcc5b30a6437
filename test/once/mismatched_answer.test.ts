// Results of the database that belong to other queries: none of them gives access to anything.
import { expect, test } from 'bun:test'
import type { Db } from '../../src/db/client.ts'
import { requireWebhook } from '../../src/github/receive.ts'
import { findLiveKeys } from '../../src/keys/store.ts'
import { createPromptFinder } from '../../src/prompts/find.ts'

const answering = (row: object) => ({ sql: async () => [row] }) as unknown as Db

test('the webhook of another organisation authenticates no delivery', async () => {
  const db = answering({ org: 'org_other', organisationId: 2, secret: 'theirs' })
  expect(
    await requireWebhook(db, 'org_mine').then(
      () => 'accepted',
      () => 'rejected',
    ),
  ).toBe('rejected')
})

test('another key authenticates no caller', async () => {
  const { sql } = answering({ hash: '02', id: 2, organisationId: 2, org: 'org_other', key: 'key_other' })
  expect((await findLiveKeys(sql, ['01'])).get('01')).toBeUndefined()
})

test.each([
  ['another prompt', { id: 2, organisationId: 1, publicId: 'pmt_other' }],
  ['the prompt of another organisation', { id: 2, organisationId: 2, publicId: 'pmt_mine' }],
])('%s is not found', async (_, row) => {
  const found = createPromptFinder(answering(row)).find(1, 'pmt_mine')
  expect(await Promise.resolve(found).catch((error) => error.code)).toBe('not_found')
})
