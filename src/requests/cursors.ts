import type { Db } from '../db/client.ts'
import type { Cursors } from '../lib/cursor_page.ts'
import { openCursor, sealCursor } from '../lib/cursor_seal.ts'
import { selectCursorKey } from './store.ts'

const cursorsOfDb = new WeakMap<Db, Cursors>()

/** The cursors of all lists. Their key is in the database, so that every replica opens what another has sealed. */
export function cursorsOf(db: Db): Cursors {
  const cursors = cursorsOfDb.get(db) ?? createCursors(db)
  cursorsOfDb.set(db, cursors)
  return cursors
}

function createCursors(db: Db): Cursors {
  let key: Promise<Buffer> | undefined

  function readKey(): Promise<Buffer> {
    key ??= selectCursorKey(db.sql).catch((error) => {
      key = undefined
      throw error
    })
    return key
  }

  return {
    seal: async (list, position) => sealCursor(await readKey(), list, position),
    open: async (list, cursor) => openCursor(await readKey(), list, cursor),
  }
}
