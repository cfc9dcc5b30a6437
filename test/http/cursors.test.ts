import { expect, test } from 'bun:test'
import { createPrompt } from '../../src/prompts/manage.ts'
import { useService } from '../use.ts'

const service = useService()

/** A key that may read every list of an organisation that has two rows in each. */
async function createReader(): Promise<string> {
  const tenant = await service.createTenant()
  await createPrompt(service.services.db, service.clock, { org: tenant.org, name: 'second', id: null })
  return (await service.createKey(tenant, ['keys:read', 'prompts:read'])).key
}

test('a cursor opens only the list that it comes from', async () => {
  const [key, other] = [await createReader(), await createReader()]
  const lists = ['keys', 'prompts', 'audit']
  for (const list of lists) {
    const { next_cursor: cursor } = (await service.get(`/${list}?limit=1`, key)).body.pagination
    for (const path of lists) {
      const statusWith = async (key: string) => (await service.get(`/${path}?cursor=${cursor}`, key)).status
      expect({ list, path, status: await statusWith(key) }).toEqual({ list, path, status: path === list ? 200 : 422 })
      expect(await statusWith(other)).toBe(422)
    }
  }
})
