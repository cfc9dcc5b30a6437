import { expect, test } from 'bun:test'
import type { Scope } from '../../src/http/caller.ts'
import { createKey } from '../../src/keys/manage.ts'
import { createPrompt } from '../../src/prompts/manage.ts'
import { useService } from '../use.ts'

const service = useService()

/** A key that may read every list of an organisation that has two rows in each. */
async function createReader(): Promise<string> {
  const { org } = await service.createTenant()
  const { db } = service.services
  await createPrompt(db, service.clock, { org, name: 'second', id: null })
  const scopes: Scope[] = ['keys:read', 'prompts:read']
  return (await createKey(db, service.clock, { org, name: 'reader', expiresAt: null, scopes })).key
}

test('a cursor opens the list that it comes from, and no other', async () => {
  const [key, other] = [await createReader(), await createReader()]
  const get = (path: string, of: string) => service.call('GET', `/api/v1/${path}`, { key: of })
  const lists = ['keys', 'prompts', 'audit']
  for (const list of lists) {
    const { next_cursor: cursor } = (await get(`${list}?limit=1`, key)).body.pagination
    const statuses = await Promise.all(
      [key, other].flatMap((of) => lists.map(async (path) => (await get(`${path}?cursor=${cursor}`, of)).status)),
    )
    expect(statuses).toEqual([...lists.map((path) => (path === list ? 200 : 422)), 422, 422, 422])
  }
})
