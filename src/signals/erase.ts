import { type Actor, operator, permitRequestOf, recordAudit } from '../audit/record.ts'
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { whyUnavailable } from '../db/errors.ts'
import { notFound } from '../errors.ts'
import { nextStepRows, yieldFor } from '../lib/periodic.ts'
import { dayMs, earlierOf, earliestInstant, lastStorableInstant } from '../lib/times.ts'
import { selectRetentions } from '../orgs/manage.ts'
import { type Prompt, readPrompts } from '../prompts/find.ts'
import { selectSpanCounts } from '../stats/read.ts'
import type { SignalSource } from './read.ts'
import { findVotes, idOfVote } from './store.ts'
import {
  claimRetention,
  deleteSignals,
  type ErasedStep,
  eraseBefore,
  eraseSignals,
  flush,
  lockSignals,
} from './store_bulk.ts'

/** With the public id of the prompt or of the organisation. */
export type PurgeSource = SignalSource & { publicId: string }

/** The signals of a step. The first one has the fewest. */
const [minStepRows, maxStepRows] = [500, 10_000]
/** A statement that waits for a lock or the disk waits for the step. */
const maxStepMs = 30
const latest = new Date(lastStorableInstant)

/** Erases one signal permanently. It still counts towards its month. */
export async function eraseOne(db: Db, clock: Clock, prompt: Prompt, signalId: number, actor: Actor): Promise<void> {
  await db.transaction(async (sql) => {
    if (!(await eraseSignals(sql, prompt, [signalId]))) throw notFound()
    const { organisationId, publicId: subject } = prompt
    const details = { signal: signalId }
    await recordAudit(sql, clock, actor, { organisationId, action: 'signal.erased', subject, details })
  }, permitRequestOf(actor))
}

/** Withdraws the signal with a subject, as its sender may for 90 days. Returns its id. */
export const withdraw = (db: Db, clock: Clock, prompt: Prompt, subject: string, actor: Actor): Promise<number> =>
  db.transaction(async (sql) => {
    const vote = { prompt, subject, createdAt: clock.now() }
    const found = (await findVotes(sql, [vote])).get(idOfVote(vote))
    if (!found || !(await eraseSignals(sql, prompt, [found.id]))) throw notFound()
    return found.id
  }, permitRequestOf(actor))

/** Counts the signals older than `before`, or all. */
export async function countSignals(db: Db, source: SignalSource, before = latest): Promise<number> {
  let total = 0
  for await (const prompts of promptsOf(db, source)) {
    const ids = prompts.map(({ id }) => id)
    const counts = await selectSpanCounts(db.sql, source.organisationId, ids, [earliestInstant, before])
    for (const { positive, negative } of counts) {
      total += positive + negative
    }
  }
  return total
}

/** Erases the signals older than `before` in short steps. Returns the number erased. */
export async function purgeSignals(
  db: Db,
  clock: Clock,
  source: PurgeSource,
  before: Date,
  onProgress: (erased: number) => void = () => {},
): Promise<number> {
  const { organisationId, publicId: subject } = source
  // The audit entry is written first, because the purge may be interrupted.
  const details = { before: before.toISOString() }
  const event = { organisationId, action: 'signals.purged', subject, details } as const
  await db.transaction((sql) => recordAudit(sql, clock, operator, event))
  const beforeNow = earlierOf(before, clock.now())
  let [total, erased] = [0, 0]
  do {
    erased = await eraseInSteps(db, source, before, (soFar) => onProgress(total + soFar))
    total += erased
    // A crash or a failover between two steps brings back signals that no later step looks at.
  } while (erased > 0 && (await countSignals(db, source, beforeNow)) > 0)
  return total
}

export const eraseAllSignals = (db: Db, prompt: Prompt, onProgress: (erased: number) => void) =>
  eraseInSteps(db, { ...prompt, prompt }, latest, onProgress)

/** Deletes the signals that were recorded since, while nobody can record another. */
export async function eraseLastSignals(sql: Sql, prompt: Prompt): Promise<void> {
  await lockSignals(sql, prompt)
  await deleteSignals(sql, prompt)
}

async function eraseInSteps(
  db: Db,
  source: SignalSource,
  before: Date,
  onProgress: (erased: number) => void,
): Promise<number> {
  let total = 0
  await repeatSteps(promptsOf(db, source), async (prompt, since, rows) => {
    const step = await eraseBefore(db.sql, prompt, since, before, rows)
    total += step.erased
    onProgress(total)
    return step
  })
  await flush(db.sql)
  return total
}

export const promptsOf = (db: Db, { organisationId, prompt }: SignalSource) =>
  prompt ? [[prompt]] : readPrompts(db, organisationId)

type Retention = Awaited<ReturnType<typeof selectRetentions>>[number]

type RetentionOptions = { isStopping(): boolean; onErased(signals: number): void }

/**
 * Returns a function that erases the signals older than the retention of their organisation, until `isStopping` returns
 * true or a retention is changed. Runs on one replica at a time (advisory lock). The others skip.
 */
export function createRetentions(db: Db, { isStopping, onErased }: RetentionOptions) {
  /** Returns false when the round ends. Writes one audit entry for all steps: one for each would drown all others. */
  async function apply({ organisationId, org, days }: Retention, now: Date): Promise<boolean> {
    const before = new Date(now.getTime() - days * dayMs)
    const details = { before: before.toISOString(), erased: 0 }
    const erase = (prompt: Prompt, since: Date, rows: number) => async (sql: Sql) =>
      (await claimRetention(sql, organisationId, days)) ? eraseBefore(sql, prompt, since, before, rows) : null
    try {
      return await repeatSteps(readPrompts(db, organisationId), async (prompt, since, rows) => {
        const step = isStopping() ? null : await db.transaction(erase(prompt, since, rows), { tenant: organisationId })
        if (step && step.erased > 0) onErased(step.erased)
        details.erased += step?.erased ?? 0
        return step
      })
    } finally {
      const event = { organisationId, action: 'signals.expired', subject: org, details } as const
      if (details.erased > 0) await recordAudit(db.sql, { now: () => now }, { name: 'retention' }, event)
    }
  }

  return async (now: Date): Promise<void> => {
    const failures: unknown[] = []
    for (const retention of await selectRetentions(db.sql)) {
      try {
        if (!(await apply(retention, now))) break
      } catch (error) {
        if (whyUnavailable(error) === 'database') throw error
        // One that uses all its transactions must not keep the others from theirs.
        failures.push(error)
      }
    }
    if (failures.length > 0) throw failures[0]
  }
}

/**
 * Repeats a step for each prompt until it finds fewer signals than it may erase, and yields to other work after each. A
 * step starts where the one before did: it passes the signals just erased, so that their index entries are marked as
 * dead, but not all that were erased before. Returns false when a step returned null, which ends all of them.
 */
async function repeatSteps(
  pages: Iterable<Prompt[]> | AsyncIterable<Prompt[]>,
  step: (prompt: Prompt, since: Date, rows: number) => Promise<ErasedStep | null>,
): Promise<boolean> {
  let rows = minStepRows
  for await (const prompts of pages) {
    for (const prompt of prompts) {
      for (let since: Date | null = earliestInstant; since; ) {
        const startedAt = performance.now()
        const done = await step(prompt, since, rows)
        if (!done) return false
        since = done.found === rows ? done.firstAt : null
        const part = (performance.now() - startedAt) / maxStepMs
        if (since) rows = nextStepRows(rows, part, minStepRows, maxStepRows)
        await yieldFor(startedAt)
      }
    }
  }
  return true
}
