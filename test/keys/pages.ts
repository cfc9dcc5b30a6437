// What the tests of browser keys share.
import { expect } from 'bun:test'
import { scopes } from '../../src/http/caller.ts'
import { createKey } from '../../src/keys/manage.ts'
import type { Tenant, TestService } from '../service.ts'

export const SHOP = 'https://shop.example.com'

/** A key with every scope. */
export async function createAdmin({ services, clock }: TestService, { org }: Tenant): Promise<string> {
  return (await createKey(services.db, clock, { org, name: 'admin', scopes: [...scopes], expiresAt: null })).key
}

export async function createBrowserKey(
  { call }: TestService,
  admin: string,
  more: object = {},
): Promise<{ id: string; key: string }> {
  const json = { name: 'page', preset: 'browser', origins: [SHOP], ...more }
  const { status, body } = await call('POST', '/api/v1/keys', { key: admin, json })
  expect([status, body.error]).toEqual([201, undefined])
  return body.data
}

export const postFromPage = (
  { call }: TestService,
  prompt: string,
  key: string,
  headers: Record<string, string> = {},
  value = 'positive',
) => call('POST', `/api/v1/prompts/${prompt}/signals`, { key, headers, json: { value } })

/** How many signals a key has recorded by its own count. */
export async function usedBy({ services }: TestService, keyId: string): Promise<number> {
  const [row] = await services.db.sql<{ used: number }>`
    select coalesce(sum(u.used), 0)::integer as used
    from api_keys k left join key_usage u on u.key_id = k.id
    where k.public_id = ${keyId}`
  return row?.used as number
}
