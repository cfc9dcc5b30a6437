import type { Sql } from '../db/client.ts'
import { selectTables, type Table } from './store.ts'

/** Every table, each after those that its foreign keys reference. */
export async function listTables(sql: Sql): Promise<Table[]> {
  const waiting = await selectTables(sql)
  const ordered: Table[] = []
  while (waiting.length > 0) {
    const next = waiting.findIndex(({ needs }) => needs.every((name) => ordered.some((table) => table.name === name)))
    if (next === -1) throw new Error(`The tables ${waiting.map(({ name }) => name)} reference each other in a circle.`)
    ordered.push(...waiting.splice(next, 1))
  }
  return ordered
}
