import type { Db, Sql } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { monthOf } from '../lib/months.ts'
import { yieldFor } from '../lib/periodic.ts'
import type { Prompt } from '../prompts/find.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { findVotes, idOfVote, isVote, writeSignals } from './store.ts'
import {
  countStored,
  insertPastSignals,
  lockSignals,
  type PastSignal,
  replaceSignals,
  selectIdentities,
} from './store_bulk.ts'

/** The numbers of new signals, of known or replaced ones, and of those that the limit of the current month refused. */
type ImportCounts = { recorded: number; known: number; refused: number }

/** The embedded engine does nothing else during a write, so each write is short. */
export const signalsPerWrite = 500

/**
 * Records the signals of a file. It is read twice, so that an invalid line is named before anything is written. Writes in
 * short transactions: after an interruption, a repeated import finds the signals of the first one.
 */
export async function importSignals(
  db: Db,
  now: Date,
  rollup: SignalRollup,
  prompt: Prompt,
  readSignals: () => AsyncIterable<PastSignal>,
  onProgress: (signals: number, share: number) => void,
): Promise<ImportCounts> {
  let total = 0
  let isInOrder = true
  let last = new Date(0)
  for await (const { createdAt } of readSignals()) {
    total += 1
    isInOrder &&= createdAt >= last
    last = createdAt
  }
  const record = createPastRecorder(db, now, prompt, isInOrder)
  const counts = { recorded: 0, known: 0, refused: 0 }
  let batch: PastSignal[] = []
  let done = 0

  async function write(): Promise<void> {
    const startedAt = performance.now()
    const { recorded, known, refused } = await record(batch)
    counts.recorded += recorded
    counts.known += known
    counts.refused += refused
    done += batch.length
    batch = []
    // A reader of the prompt would time out on many new signals.
    await rollup.catchUp(prompt)
    onProgress(done, done / total)
    await yieldFor(startedAt)
  }

  for await (const signal of readSignals()) {
    // A later line replaces the signal of an earlier one.
    if (signal.subject && batch.some(({ subject }) => subject === signal.subject)) await write()
    if (batch.push(signal) >= signalsPerWrite) await write()
  }
  if (batch.length > 0) await write()
  return counts
}

/** Of a time: how many more signals of each identity the prompt has than were given. They are counted up to an id. */
type SeenTime = { lastId: number; surplus: Map<string, number> }

/**
 * Creates a function that records signals of the past, each once: the n-th of several equal signals is new unless the prompt
 * has n of them, with its subject or without one. Those of the month of `now` count towards its limit, those of earlier
 * months towards none. Signals in the order of their times take no more memory the more they are.
 */
export function createPastRecorder(
  db: Db,
  now: Date,
  prompt: Prompt,
  isInOrder = false,
): (signals: PastSignal[]) => Promise<ImportCounts> {
  const seen = new Map<string, SeenTime>()
  const month = monthOf(now)

  return (signals) =>
    db.transaction(async (sql) => {
      if (!(await lockSignals(sql, prompt))) throw notFound()
      const identities = await selectIdentities(sql, signals)
      const times = new Map(
        signals.map(({ createdAt }) => {
          const time = createdAt.toISOString()
          return [time, seen.get(time) ?? { lastId: 0, surplus: new Map() }]
        }),
      )
      if (isInOrder) seen.clear()
      for (const [time, one] of times) seen.set(time, one)
      // Ids commit in their order, so only later ones are new: counting all again would be slow for many at one time.
      for (const { time, identity, count, lastId } of await countStored(sql, prompt, times)) {
        const one = times.get(time) as SeenTime
        one.lastId = Math.max(one.lastId, lastId)
        one.surplus.set(identity, (one.surplus.get(identity) ?? 0) + count)
      }
      const given = signals.map((signal, index) => {
        const { surplus } = times.get(signal.createdAt.toISOString()) as SeenTime
        return { signal, surplus, ...(identities[index] as (typeof identities)[number]) }
      })
      // A vote as it stands here is no change of another sender's vote of the same subject.
      const unknown = given.filter(({ signal, surplus, identity }) => !(isVote(signal) && take(surplus, identity)))
      const replaced = new Set<PastSignal>(await replaceVotes(sql, prompt, unknown))
      const missing = unknown
        .filter(({ signal }) => !replaced.has(signal))
        .filter(({ surplus, identity, plain }) => {
          const isKnown = take(surplus, identity) || take(surplus, plain)
          if (!isKnown) surplus.set(identity, (surplus.get(identity) ?? 0) - 1)
          return !isKnown
        })
        .map(({ signal }) => signal)
      const isCurrent = ({ createdAt }: PastSignal) => monthOf(createdAt).name === month.name
      await insertPastSignals(
        sql,
        prompt,
        missing.filter((signal) => !isCurrent(signal)),
      )
      const more = { prompt, month, idempotencyKey: null, browserKey: null }
      const current = missing.filter(isCurrent).map((signal) => ({ ...signal, ...more }))
      const results = current.length > 0 ? await writeSignals(sql, current) : []
      const refused = results.filter(({ outcome }) => outcome === 'refused').length
      return { recorded: missing.length - refused, known: signals.length - missing.length, refused }
    })
}

/** Whether one of this identity is left, which it takes. */
function take(surplus: SeenTime['surplus'], identity: string): boolean {
  const left = surplus.get(identity) ?? 0
  if (left > 0) surplus.set(identity, left - 1)
  return left > 0
}

/** Replaces the votes that are earlier than these signals. Returns the signals that had one, earlier or later. */
async function replaceVotes(sql: Sql, prompt: Prompt, given: { signal: PastSignal }[]): Promise<PastSignal[]> {
  const votes = given.map(({ signal }) => signal).filter(isVote)
  if (votes.length === 0) return []
  const found = await findVotes(
    sql,
    votes.map((vote) => ({ ...vote, prompt })),
  )
  const known = votes.flatMap((vote) => {
    const stored = found.get(idOfVote({ ...vote, prompt }))
    return stored ? [{ vote, stored }] : []
  })
  const earlier = known.filter(({ vote, stored }) => stored.createdAt < vote.createdAt)
  if (earlier.length > 0) {
    await replaceSignals(
      sql,
      prompt,
      earlier.map(({ vote, stored }) => ({ ...vote, id: stored.id })),
    )
  }
  return known.map(({ vote }) => vote)
}
