import type { Sql } from '../db/client.ts'
import { type FileSeen, updateFilesSeen } from './store.ts'

export type { FileSeen }

/** Records how the files of prompts were last seen on the default branch of their repository. */
export async function markFilesSeen(sql: Sql, seen: FileSeen[]): Promise<void> {
  if (seen.length > 0) await updateFilesSeen(sql, seen)
}
