import type { Db } from '../db/client.ts'
import { isReadOnly } from '../db/errors.ts'
import { unavailable } from '../errors.ts'
import { yieldFor } from '../lib/periodic.ts'
import { countSignals, selectUncounted } from './store.ts'

/**
 * Keeps the counts by time and by commit (a rollup) close behind the signals themselves. What is read is exact however far
 * behind they are; this makes it cheap.
 */
export type SignalRollup = {
  /** Called for every signal that was recorded. */
  recorded(promptId: number): void
  /** Counts the signals of prompts that have many new ones. */
  countRecorded(): Promise<void>
  /**
   * To be awaited before the counts of a prompt are read: a reader adds the signals that are not counted yet itself, and so
   * must find few of them. Rejects when there are too many to be counted in time; the counting then goes on without it.
   * On a database that can only be read nothing is counted, and the reader adds all of them, which takes it longer.
   */
  catchUp(promptId: number): Promise<void>
  /** Does the same for prompts that are read together; the time that it may take begins at `beganAt`. */
  catchUpEach(promptIds: number[], beganAt: number): Promise<void>
}

/** The signals that one step counts: about 10 ms, in which the embedded engine does nothing else. */
const stepRows = 1_000
/**
 * The steps of one round. Counting takes some 5 µs of Postgres for a signal, about a tenth of what recording it takes: at
 * full load it waits for a quieter time, or for a reader.
 */
const stepsPerRound = 10
/** A prompt with more new signals than this is counted all the same: its next reader would have to wait too long. */
const maxBehind = 100_000
/** A reader adds up to this many itself, which takes a millisecond or two. */
const maxUncounted = 2_000
/** A reader of many prompts adds up to this many of each. */
const maxUncountedOfEach = 100
/** How long a reader counts before it gives up. */
const defaultPatienceMs = 3_000
/** How many prompts with new signals are remembered; those of the others wait for a reader. */
const maxRemembered = 10_000

export function createSignalRollup(db: Db, { patienceMs = defaultPatienceMs } = {}): SignalRollup {
  const newSignals = new Map<number, number>()
  /** What is being counted, and whether all of it was in the end: readers of one prompt wait for the same work. */
  const underWay = new Map<number, Promise<boolean>>()
  let isInRound = false

  async function count(promptId: number, deadline: number): Promise<boolean> {
    while (performance.now() < deadline) if ((await countSignals(db.sql, promptId, stepRows)) < stepRows) return true
    return false
  }

  function countOnce(promptId: number, deadline: number): Promise<boolean> {
    const counting = underWay.get(promptId) ?? count(promptId, deadline).finally(() => underWay.delete(promptId))
    underWay.set(promptId, counting)
    return counting
  }

  async function countUncounted(promptIds: number[], moreThan: number, beganAt: number): Promise<void> {
    const deadline = beganAt + patienceMs
    for (const promptId of await selectUncounted(db.sql, promptIds, moreThan)) {
      while (!(await countOnce(promptId, deadline))) {
        if (performance.now() < deadline) continue
        // Rounds go on until nothing is left.
        newSignals.set(promptId, Number.POSITIVE_INFINITY)
        throw unavailable()
      }
    }
  }

  const catchUp = (promptIds: number[], moreThan: number, beganAt: number): Promise<void> =>
    countUncounted(promptIds, moreThan, beganAt).catch((error) => {
      if (!isReadOnly(error)) throw error
    })

  /** The prompt that has waited the longest of those with so many new signals. */
  function findBehind(number: number): [promptId: number, number: number] | undefined {
    for (const waiting of newSignals) if (waiting[1] >= number) return waiting
    return undefined
  }

  /** Counts one step of what is behind the most; false when nothing is behind enough. */
  async function countNext(step: number): Promise<boolean> {
    const next =
      step >= stepsPerRound ? findBehind(maxBehind) : (findBehind(stepRows) ?? findBehind(maxUncountedOfEach))
    if (!next) return false
    const [promptId, number] = next
    // It comes after all others then, as it would with its next signal.
    newSignals.delete(promptId)
    const counted = await countSignals(db.sql, promptId, stepRows)
    // Other replicas and readers count too: a step that was not full had all that there were.
    if (counted === stepRows && number > stepRows)
      newSignals.set(promptId, number - stepRows + (newSignals.get(promptId) ?? 0))
    return true
  }

  return {
    recorded(promptId) {
      const number = newSignals.get(promptId)
      // Those of a busy prompt are counted soon, so it is a quiet one that has been there the longest.
      if (number === undefined && newSignals.size >= maxRemembered)
        newSignals.delete(newSignals.keys().next().value ?? 0)
      newSignals.set(promptId, (number ?? 0) + 1)
    },
    async countRecorded() {
      // A round that has much to do may last longer than the interval.
      if (isInRound) return
      isInRound = true
      try {
        for (let step = 0; ; step += 1) {
          const beganAt = performance.now()
          if (!(await countNext(step))) return
          await yieldFor(beganAt)
        }
      } finally {
        isInRound = false
      }
    },
    catchUp: (promptId) => catchUp([promptId], maxUncounted, performance.now()),
    catchUpEach: (promptIds, beganAt) => catchUp(promptIds, maxUncountedOfEach, beganAt),
  }
}
