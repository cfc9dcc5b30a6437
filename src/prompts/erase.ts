import { operator, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { deleteHistory, eraseHistory } from '../history/erase.ts'
import { eraseAllSignals, eraseLastSignals } from '../signals/erase.ts'
import { deleteEventsAbout } from '../webhooks/events.ts'
import { changePrompt, noFile } from './manage.ts'
import { deletePrompt, insertErasedFile, lockPrompt, type Prompt } from './store.ts'

/**
 * Erases a prompt with its signals, history and texts, in short steps. The prompt comes last, so that an interrupted erasure
 * can be repeated. The erased signals still count towards the month.
 */
export async function erasePrompt(
  db: Db,
  clock: Clock,
  prompt: Prompt,
  onProgress: (erasedSignals: number) => void = () => {},
): Promise<void> {
  const { organisationId, publicId: subject } = prompt
  await insertErasedFile(db.sql, prompt)
  // Without a file, neither sync nor the webhook finds the prompt.
  const { name } = await changePrompt(db, clock, prompt, { archived: true, ...noFile })
  // Written first, because the erasure may be interrupted.
  const event = { organisationId, action: 'prompt.erased', subject, details: { name } } as const
  await db.transaction((sql) => recordAudit(sql, clock, operator, event))
  await eraseAllSignals(db, prompt, onProgress)
  await eraseHistory(db, prompt)
  await db.transaction(async (sql) => {
    if (!(await lockPrompt(sql, prompt))) throw notFound()
    await deleteHistory(sql, prompt)
    await eraseLastSignals(sql, prompt)
    await deleteEventsAbout(sql, prompt)
    await deletePrompt(sql, prompt)
  })
}
