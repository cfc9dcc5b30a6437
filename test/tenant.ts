// What most tests begin with: an organisation with a key and a prompt. Free of bun:test, for the runner as well.
import type { Clock } from '../src/clock.ts'
import { readConfig } from '../src/config.ts'
import type { Db } from '../src/db/client.ts'
import { type Options, openDatabase } from '../src/db/open.ts'
import { createKey } from '../src/keys/manage.ts'
import { createOrganisation, requireOrganisation } from '../src/orgs/manage.ts'
import { createPrompt } from '../src/prompts/manage.ts'

export type Tenant = { org: string; key: string; keyId: string; prompt: string }

/** The database of these settings, beside a server or without one. */
export const openDb = (settings: Record<string, string | undefined>, more: Partial<Options> = {}): Promise<Db> =>
  openDatabase(readConfig({}, settings), { queryTimeoutMs: 0, maxConnections: 1, whenInUse: 'share', ...more })

export async function insertTenant(db: Db, clock: Clock, monthlyLimit: number | null = null): Promise<Tenant> {
  const { id: org } = await createOrganisation(db, clock, { name: 'Test', plan: 'free', monthlyLimit })
  const owner = await requireOrganisation(db, org)
  const { id: keyId, key } = await createKey(db, clock, owner, { name: 'test' })
  const { id: prompt } = await createPrompt(db, clock, owner, { name: 'test' })
  return { org, key, keyId, prompt }
}
