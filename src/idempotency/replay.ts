import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { invalid } from '../errors.ts'
import type { IdempotentRequest } from '../http/idempotency.ts'
import { keyRetentionMs } from '../lib/idempotency_key.ts'
import { claimKey, deleteRequests, findAnswer, keepAnswer } from './store.ts'

const pruneBatch = 5_000

/**
 * Makes an organisation's change in a transaction, once for each Idempotency-Key: a retry gets the answer that was kept
 * instead, which lacks what may be shown only once. Without a key the change is simply made.
 */
export const changeOnce = <T extends object>(
  db: Db,
  clock: Clock,
  request: IdempotentRequest,
  change: (sql: Sql) => Promise<T>,
  withoutSecret: (answer: T) => object = (answer) => answer,
): Promise<{ answer: object; isReplayed: boolean }> =>
  db.transaction(
    async (sql) => {
      if (request.key === null) return { answer: await change(sql), isReplayed: false }
      if (await claimKey(sql, request, clock.now())) {
        const answer = await change(sql)
        await keepAnswer(sql, request, withoutSecret(answer))
        return { answer, isReplayed: false }
      }
      const answer = await findAnswer(sql, request)
      if (!answer) throw conflict()
      return { answer, isReplayed: true }
    },
    { tenant: request.organisationId, deadline: request.deadline },
  )

const conflict = () =>
  invalid('The Idempotency-Key was used for another request.', [
    { path: 'Idempotency-Key', message: 'must be new, or come with the same request as before' },
  ])

/** Deletes the requests that are past their time, in batches that hold no lock for long. */
export async function pruneRequests(db: Db, clock: Clock): Promise<void> {
  const before = new Date(clock.now().getTime() - keyRetentionMs)
  while ((await deleteRequests(db.sql, before, pruneBatch)) === pruneBatch);
}
