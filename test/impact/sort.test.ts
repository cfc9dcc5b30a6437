import { expect, test } from 'bun:test'
import type { Db, Sql } from '../../src/db/client.ts'
import { createSortedLists } from '../../src/impact/sort.ts'
import { sortInSlices } from '../../src/lib/sliced_sort.ts'
import type { SignalRollup } from '../../src/stats/rollup.ts'

/** Orders over a database that has this many prompts, and counts how often their names are listed. */
function createOrders(count: number) {
  const listed = { times: 0 }
  const sql = (async (strings: TemplateStringsArray, ...values: unknown[]) => {
    if (!strings[0]?.includes('select p.id, p.name')) return []
    const [beforeId, limit] = [values[1], values.at(-1)] as [number, number]
    if (beforeId > count) listed.times += 1
    const first = Math.min(beforeId - 1, count)
    return Array.from({ length: Math.min(first, limit) }, (_, index) => ({
      id: first - index,
      name: `n${first - index}`,
    }))
  }) as unknown as Sql
  const listSorted = createSortedLists({
    db: { sql, heavyRead: (_, read) => read() } as Db,
    clock: { now: () => new Date() },
    rollup: {} as SignalRollup,
  })
  const list = (organisationId = 1) =>
    listSorted(
      {
        organisationId,
        filters: { search: null, archived: 'all' },
        sort: 'name',
        from: new Date(0),
        until: new Date(1),
      },
      { limit: 2, cursor: null },
    )
  return { listed, list }
}

test.each([
  [1_000, 'not kept', 2],
  [1_001, 'kept for the next one', 1],
])('eight concurrent callers share one order; of %i prompts it is then %s', async (count, _, times) => {
  const { listed, list } = createOrders(count)
  const pages = await Promise.all(Array.from({ length: 8 }, () => list()))
  expect(new Set(pages.map(({ sortedAt }) => sortedAt)).size).toBe(1)
  expect(listed.times).toBe(1)
  const { sortedAt } = await list()
  expect(listed.times).toBe(times)
  expect(sortedAt === pages[0]?.sortedAt).toBe(times === 1)
  await list(2)
  expect(listed.times).toBe(times + 1)
})

test('a sort in slices sorts like any other, and gives way to others', async () => {
  const items = Array.from({ length: 10_000 }, (_, index) => ({ value: (index * 7919) % 1_000, index }))
  const compare = (a: { value: number }, b: { value: number }) => a.value - b.value
  let turns = 0
  const counting = setInterval(() => (turns += 1), 0)
  const sorted = await sortInSlices(items, compare)
  clearInterval(counting)
  expect(sorted).toEqual(items.toSorted(compare))
  expect(turns).toBeGreaterThan(0)
  expect(await sortInSlices([], compare)).toEqual([])
})
