import type { Db } from '../db/client.ts'
import { decryptCursor, encryptCursor } from '../lib/cursor_cipher.ts'
import { badCursor, type Cursors } from '../lib/cursor_page.ts'
import { loadOnce } from '../lib/load_once.ts'
import { selectCursorKey } from './store.ts'

const cursorsOfDb = new WeakMap<Db, Cursors>()

/** The cursors of all lists. Their key is in the database, so that every replica decrypts what another has encrypted. */
export function cursorsOf(db: Db): Cursors {
  const cursors = cursorsOfDb.get(db) ?? createCursors(db)
  cursorsOfDb.set(db, cursors)
  return cursors
}

function createCursors(db: Db): Cursors {
  const loadKey = loadOnce(() => selectCursorKey(db.sql))
  return {
    encrypt: async (list, position) => encryptCursor(await loadKey(), list, position),
    async decrypt(list, cursor) {
      if (cursor === null) return null
      const position = decryptCursor(await loadKey(), list, cursor)
      if (!position) throw badCursor()
      return position
    },
  }
}
