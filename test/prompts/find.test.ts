import { expect, test } from 'bun:test'
import type { Db } from '../../src/db/client.ts'
import { createPromptFinder, requirePrompt } from '../../src/prompts/find.ts'
import { useService } from '../use.ts'

const service = useService()

/** The same database, with a count of the statements that are sent to it. */
function counting(db: Db) {
  let statements = 0
  const sql = new Proxy(db.sql, {
    apply(target, self, given) {
      statements += 1
      return Reflect.apply(target, self, given)
    },
  })
  return { db: { ...db, sql }, statements: () => statements }
}

test("another organisation's prompt costs as much as one that does not exist, also when it is cached", async () => {
  const [own, other] = [await service.createTenant(), await service.createTenant()]
  const { db } = service.services
  const [{ organisationId, id }, another] = [
    await requirePrompt(db.sql, own.prompt),
    await requirePrompt(db.sql, other.prompt),
  ]
  const { db: counted, statements } = counting(db)
  const { find } = createPromptFinder(counted)
  expect(another).toMatchObject(await find(another.organisationId, other.prompt))

  async function costOf(prompt: string, isFound: boolean): Promise<number> {
    const before = statements()
    const found = await Promise.resolve(find(organisationId, prompt)).catch(() => null)
    expect(found !== null).toBe(isFound)
    return statements() - before
  }
  for (let round = 0; round < 3; round += 1) {
    expect([await costOf(other.prompt, false), await costOf('pmt_unknown', false)]).toEqual([1, 1])
  }
  expect([await costOf(own.prompt, true), await costOf(own.prompt, true)]).toEqual([1, 0])
  expect(await find(organisationId, own.prompt)).toEqual({ organisationId, id, publicId: own.prompt })
})
