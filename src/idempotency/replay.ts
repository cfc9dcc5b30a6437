import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { pruneTable } from '../db/prune.ts'
import { invalid } from '../errors.ts'
import type { IdempotentRequest } from '../http/idempotency.ts'
import { claimKey, findAnswer, keepAnswer } from './store.ts'

/** Makes a change once for each Idempotency-Key. A retry gets the stored answer, without secrets shown only once. */
export const changeOnce = <T extends object>(
  db: Db,
  clock: Clock,
  request: IdempotentRequest,
  change: (sql: Sql) => Promise<T>,
  withoutSecret?: (answer: T) => object,
): Promise<{ answer: object; isReplayed: boolean }> =>
  db.transaction((sql) => answerOnce<T>(sql, clock, request, change, withoutSecret), {
    tenant: request.organisationId,
    deadline: request.deadline,
  })

/** The same in the caller's transaction. */
export async function answerOnce<T extends object>(
  sql: Sql,
  clock: Clock,
  request: IdempotentRequest,
  change: (sql: Sql) => Promise<T>,
  withoutSecret: (answer: T) => object = (answer) => answer,
): Promise<{ answer: T; isReplayed: boolean }> {
  if (request.key === null) return { answer: await change(sql), isReplayed: false }
  if (await claimKey(sql, request, clock.now())) {
    const answer = await change(sql)
    await keepAnswer(sql, request, withoutSecret(answer))
    return { answer, isReplayed: false }
  }
  const answer = await findAnswer(sql, request)
  if (!answer) throw conflict()
  return { answer: answer as T, isReplayed: true }
}

const conflict = () =>
  invalid('The Idempotency-Key was used for another request.', [
    { path: 'Idempotency-Key', message: 'must be new, or come with the same request as before' },
  ])

/** How long clients may rely on their idempotency keys. */
const keyRetentionMs = 24 * 3_600_000

/** Forgets the idempotency keys of signals and of other requests that clients may no longer rely on. */
export async function pruneIdempotencyKeys(db: Db, now: Date): Promise<void> {
  const before = new Date(now.getTime() - keyRetentionMs)
  await pruneTable(db, 'idempotency_keys', 'created_at', before)
  await pruneTable(db, 'idempotent_requests', 'created_at', before)
}
