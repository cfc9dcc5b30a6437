import { beforeAll, expect, test } from 'bun:test'
import { scopes } from '../../src/lib/scopes.ts'
import { useService } from '../use.ts'

const service = useService()
const lists = ['keys', 'prompts', 'impact', 'audit']
let key: string
let other: string

/** A key that may read every list of an organisation that has four rows or more in each. */
async function createReader(): Promise<string> {
  const reader = await service.createKey(await service.createTenant(), [...scopes], { name: 'reader' })
  for (const list of ['keys', 'prompts']) {
    for (const name of ['one', 'two', 'three']) await service.post(`/${list}`, reader.key, { name })
  }
  return reader.key
}

beforeAll(async () => {
  ;[key, other] = [await createReader(), await createReader()]
})

test.each([
  ['keys', ['three', 'two', 'one', 'reader', 'test']],
  ['prompts', ['three', 'two', 'one', 'test']],
])('the list of %s goes by cursor, newest first, to the end; a forged cursor is rejected', async (list, expected) => {
  const names: string[] = []
  let path: string | undefined = `/${list}?limit=2`
  while (path) {
    const { body, headers } = await service.get(path, key)
    names.push(...body.data.map(({ name }: { name: string }) => name))
    const { per_page, next_cursor: cursor } = body.pagination
    expect(per_page).toBe(2)
    path = cursor === null ? undefined : `/${list}?limit=2&cursor=${cursor}`
    expect(headers.get('link')).toBe(path === undefined ? null : `</api/v1${path}>; rel="next"`)
  }
  expect(names).toEqual(expected)
  for (const cursor of ['', 'x', '!', 'MQ==', '%00']) {
    const { status, body } = await service.get(`/${list}?cursor=${cursor}`, key)
    expect({ cursor, status, path: body.error.details?.[0]?.path }).toEqual({ cursor, status: 422, path: 'cursor' })
  }
})

test.each(lists)(
  'a cursor of the list of %s opens no other list, and not that of another organisation',
  async (list) => {
    const { next_cursor: cursor } = (await service.get(`/${list}?limit=1`, key)).body.pagination
    for (const path of lists) {
      const statusOf = async (caller: string) => (await service.get(`/${path}?cursor=${cursor}`, caller)).status
      expect({ path, status: await statusOf(key) }).toEqual({ path, status: path === list ? 200 : 422 })
      expect({ path, status: await statusOf(other) }).toEqual({ path, status: 422 })
    }
  },
)
