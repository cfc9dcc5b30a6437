import { expect } from 'bun:test'
import type { TestService } from '../service.ts'
import { useAdmin, useService, useTenant } from '../use.ts'

export const SHOP = 'https://shop.example.com'

export async function createBrowserKey(service: TestService, admin: string, more: object = {}) {
  const { status, body } = await service.post('/keys', admin, {
    name: 'page',
    preset: 'browser',
    origins: [SHOP],
    ...more,
  })
  expect({ status, error: body.error }).toEqual({ status: 201, error: undefined })
  return body.data as { id: string; key: string }
}

/** A tenant of the shared service, and what its administrator and pages do with browser keys. */
export function useBrowserKeys() {
  const service = useService()
  const tenant = useTenant(service)
  const admin = useAdmin(service, tenant)
  return {
    service,
    tenant,
    admin,
    browserKey: (more?: object, by = admin.key) => createBrowserKey(service, by, more),
    rotate: async (id: string) => (await service.post(`/keys/${id}/rotate`, admin.key, {})).body.data,
    change: (id: string, json: object) => service.patch(`/keys/${id}`, admin.key, json),
    post: (key: string, headers: Record<string, string> = {}, prompt = tenant.prompt, value = 'positive') =>
      service.post(`/prompts/${prompt}/signals`, key, { value }, headers),
  }
}

/** How many signals a key has recorded by its own count. */
export async function usedBy({ services }: TestService, keyId: string): Promise<number> {
  const [row] = await services.db.sql<{ used: number }>`
    select coalesce(sum(u.used), 0)::integer as used
    from api_keys k left join key_usage u on u.key_id = k.id
    where k.public_id = ${keyId}`
  return row?.used as number
}
