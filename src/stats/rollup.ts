import type { Db } from '../db/client.ts'
import { isReadOnly } from '../db/errors.ts'
import { unavailable } from '../errors.ts'
import { yieldFor } from '../lib/periodic.ts'
import { rollUpSignals, selectPending } from './store.ts'

export type SignalRollup = ReturnType<typeof createSignalRollup>

/** Signals per step. The embedded engine does nothing else during a step. */
const stepRows = 1_000
/** Steps per round. Under full load, rollups wait for a quieter time or for a reader. */
const stepsPerRound = 10
/** A prompt with more new signals than this is rolled up even then: its next reader would time out. */
const maxBehind = 100_000
/** A reader adds up to this many signals itself. */
const maxTail = 2_000
/** A reader of many prompts adds up to this many of each. */
const maxTailOfEach = 100
/** How many prompts with new signals are remembered. The others are rolled up by their next reader. */
const maxRemembered = 10_000

/**
 * Keeps the rollups (counts by time and by commit) close behind the signals. Readers add the signals that are not rolled up
 * yet, so a late rollup makes a read slower, never wrong.
 */
export function createSignalRollup(db: Db, { patienceMs = 3_000 } = {}) {
  const newSignals = new Map<number, number>()
  /** The rollups in flight; each resolves to whether it finished. Readers of one prompt share one. */
  const inFlight = new Map<number, Promise<boolean>>()

  async function rollUp(promptId: number, deadline: number): Promise<boolean> {
    while (performance.now() < deadline) if ((await rollUpSignals(db.sql, promptId, stepRows)) < stepRows) return true
    return false
  }

  function joinRollUp(promptId: number, deadline: number): Promise<boolean> {
    const rolling = inFlight.get(promptId) ?? rollUp(promptId, deadline).finally(() => inFlight.delete(promptId))
    inFlight.set(promptId, rolling)
    return rolling
  }

  async function shortenTails(promptIds: number[], maxLeft: number, deadline: number): Promise<void> {
    for (const promptId of await selectPending(db.sql, promptIds, maxLeft)) {
      while (!(await joinRollUp(promptId, deadline))) {
        // The rollup of another reader may have had an earlier deadline.
        if (performance.now() < deadline) continue
        // Infinity keeps the prompt in the rounds until nothing is left.
        newSignals.set(promptId, Number.POSITIVE_INFINITY)
        throw unavailable('timeout')
      }
    }
  }

  const catchUp = (promptIds: number[], maxLeft: number, startedAt: number): Promise<void> =>
    shortenTails(promptIds, maxLeft, startedAt + patienceMs).catch((error) => {
      if (!isReadOnly(error)) throw error
    })

  /** Of the prompts with at least this many new signals, the one that has waited longest. */
  function findBehind(minimum: number): [promptId: number, number: number] | undefined {
    for (const waiting of newSignals) if (waiting[1] >= minimum) return waiting
    return undefined
  }

  /** Rolls up one step of one prompt. Returns false when no prompt is far enough behind. */
  async function rollUpNext(step: number): Promise<boolean> {
    const next = step >= stepsPerRound ? findBehind(maxBehind) : (findBehind(stepRows) ?? findBehind(maxTailOfEach))
    if (!next) return false
    const [promptId, number] = next
    // Moves the prompt to the end of the queue.
    newSignals.delete(promptId)
    const rolledUp = await rollUpSignals(db.sql, promptId, stepRows)
    // Other replicas and readers roll up too: a partial step means that nothing is left.
    if (rolledUp === stepRows && number > stepRows)
      newSignals.set(promptId, number - stepRows + (newSignals.get(promptId) ?? 0))
    return true
  }

  return {
    /** Called for every recorded signal. */
    recorded(promptId: number): void {
      const number = newSignals.get(promptId)
      // Busy prompts leave the map soon, so the oldest one in it is a quiet one.
      if (number === undefined && newSignals.size >= maxRemembered)
        newSignals.delete(newSignals.keys().next().value ?? 0)
      newSignals.set(promptId, (number ?? 0) + 1)
    },
    /** Rolls up the prompts that have many new signals. */
    async rollUpPending(): Promise<void> {
      for (let step = 0; ; step += 1) {
        const startedAt = performance.now()
        if (!(await rollUpNext(step))) return
        await yieldFor(startedAt)
      }
    },
    /**
     * Rolls up a prompt before it is read, unless few signals are missing. Rejects with `unavailable` if that takes too
     * long; the rest is then rolled up in the background. Does nothing on a read-only database.
     */
    catchUp: (promptId: number) => catchUp([promptId], maxTail, performance.now()),
    /** The same for prompts that are read together. The timeout starts at `startedAt`. */
    catchUpEach: (promptIds: number[], startedAt: number) => catchUp(promptIds, maxTailOfEach, startedAt),
  }
}
