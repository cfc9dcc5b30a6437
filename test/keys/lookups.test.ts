import { beforeAll, expect, test } from 'bun:test'
import type { Db, Sql } from '../../src/db/client.ts'
import { createServices } from '../../src/deps.ts'
import { createLastUsed } from '../../src/keys/last_used.ts'
import { listKeys } from '../../src/keys/manage.ts'
import { markKeysUsed } from '../../src/keys/store.ts'
import { createLog } from '../../src/log.ts'
import { requireOrganisation } from '../../src/orgs/manage.ts'
import { eventually } from '../program.ts'
import type { Tenant } from '../service.ts'
import { useOwnService } from '../use.ts'

const service = useOwnService()
let db: Db
let tenants: Tenant[]

beforeAll(async () => {
  db = service.services.db
  tenants = await Promise.all(Array.from({ length: 20 }, () => service.createTenant()))
})

/** The same database, which notes the statements that name keys; closing it does nothing. */
function watched(): { db: Db; statements: string[] } {
  const statements: string[] = []
  const sql = Object.assign((text: TemplateStringsArray, ...values: unknown[]) => {
    const statement = text.join('?')
    if (/keys/.test(statement)) statements.push(statement)
    return db.sql(text, ...values)
  }, db.sql) as Sql
  return { db: { ...db, sql, close: async () => {} }, statements }
}

const lastUsedAt = async ({ org }: Tenant) => {
  const { id } = await requireOrganisation(db, org)
  const { data } = await listKeys(db, id, { limit: 100, cursor: null })
  return data.at(-1)?.last_used_at?.getTime()
}

test('the keys of one turn are looked up in one statement, and each caller gets its own organisation', async () => {
  const { db: own, statements } = watched()
  const services = createServices({ db: own, clock: service.clock, log: createLog('silent') })
  const callers = await Promise.all(tenants.map(async ({ key }) => services.verifyKey(`Bearer ${key}`)))
  expect(callers.map(({ org }) => org)).toEqual(tenants.map(({ org }) => org))
  expect(statements.filter((text) => text.includes('k.hash ='))).toHaveLength(1)
  await services.close()
  expect(statements.filter((text) => text.includes('set last_used_at'))).toHaveLength(1)
  expect(statements).toHaveLength(2)
})

test('the first use of a key is seen at once, and later ones are written when the service stops', async () => {
  const { db: own, statements } = watched()
  const services = createServices({ db: own, clock: service.clock, log: createLog('silent') })
  const [first, second] = await Promise.all([service.createTenant(), service.createTenant()])
  await services.verifyKey(`Bearer ${first.key}`)
  await eventually(async () => (await lastUsedAt(first)) !== undefined, true)
  await services.verifyKey(`Bearer ${second.key}`)
  expect(await lastUsedAt(second)).toBeUndefined()
  await services.close()
  expect(Math.abs(((await lastUsedAt(second)) as number) - Date.now())).toBeLessThan(60_000)
  expect(statements.filter((text) => text.includes('set last_used_at'))).toHaveLength(2)
})

test('a last use is never set back, and one that could not be written is kept for the next flush', async () => {
  const tenant = await service.createTenant()
  const [row] = await db.sql<{ id: number }>`select id from api_keys where public_id = ${tenant.keyId}`
  const id = row?.id as number
  const [earlier, later] = [new Date('2026-11-14T10:00:00Z'), new Date('2026-11-14T10:00:59Z')]
  await markKeysUsed(db.sql, new Map([[id, later]]))
  await markKeysUsed(db.sql, new Map([[id, earlier]]))
  expect(await lastUsedAt(tenant)).toBe(later.getTime())

  let isAway = true
  const sql = Object.assign(
    (text: TemplateStringsArray, ...values: unknown[]) =>
      isAway ? Promise.reject(new Error('away')) : db.sql(text, ...values),
    db.sql,
  ) as Sql
  const lastUsed = createLastUsed({ ...db, sql })
  const latest = new Date('2026-11-14T10:05:00Z')
  lastUsed.record(id, latest)
  await lastUsed.flush()
  isAway = false
  await lastUsed.flush()
  expect(await lastUsedAt(tenant)).toBe(latest.getTime())
})
