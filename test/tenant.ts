// What most tests begin with: an organisation with a key and a prompt. Free of bun:test, for the runner as well.
import type { Clock } from '../src/clock.ts'
import type { Db } from '../src/db/client.ts'
import { createKey } from '../src/keys/manage.ts'
import { createOrganisation } from '../src/orgs/manage.ts'
import { createPrompt } from '../src/prompts/manage.ts'

export type Tenant = { org: string; key: string; keyId: string; prompt: string }

export async function insertTenant(db: Db, clock: Clock, monthlyLimit: number | null = null): Promise<Tenant> {
  const { id: org } = await createOrganisation(db, clock, { name: 'Test', plan: 'free', monthlyLimit })
  const { id: keyId, key } = await createKey(db, clock, { org, name: 'test', expiresAt: null })
  const { id: prompt } = await createPrompt(db, clock, { org, name: 'test', id: null })
  return { org, key, keyId, prompt }
}
