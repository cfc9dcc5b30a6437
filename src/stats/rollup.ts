import type { Db } from '../db/client.ts'
import { isReadOnly } from '../db/errors.ts'
import { unavailable } from '../errors.ts'
import { nextStepRows, yieldFor } from '../lib/periodic.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import { rollUpSignals, selectPromptsBehind } from './store.ts'

/** The number of new signals of a prompt. Infinity: roll up until no signal is left. */
type NewSignals = { prompt: OwnedPrompt; number: number }

export type SignalRollup = ReturnType<typeof createSignalRollup>

/** The fewest signals per step. Steps start with it, and those of the embedded engine keep to it. */
const minStepRows = 1_000
/** No writer waits for a rollup, so its steps may be long. A step is slow if every signal names a different commit. */
const maxStepMs = 100
/** Steps per round. Under full load, the other signals wait for a later round or a reader. */
const stepsPerRound = 10
/** A prompt this far behind is rolled up even after `stepsPerRound`: its next reader would time out. */
const maxBehind = 100_000
/** A reader adds up to this many signals that are not rolled up yet. */
const maxTail = 2_000
/** A reader of many prompts adds up to this many per prompt. */
const maxTailOfEach = 100
const retrySeconds = 10
/** How many prompts with new signals are remembered. The others are rolled up by their next reader. */
const maxRemembered = 10_000

const catchingUp = 'Many signals of this prompt are not counted yet. Try again after the seconds in Retry-After.'

/**
 * Keeps the rollups (counts by time and by commit) close behind the signals. Readers add the signals that are not rolled up
 * yet, so a late rollup makes a read slower, never wrong.
 */
export function createSignalRollup(
  db: Db,
  { patienceMs = 3_000, maxStepRows = db.isEmbedded ? minStepRows : 50_000 } = {},
) {
  const newSignals = new Map<number, NewSignals>()
  /** The rollups in flight, one per prompt: its readers share it. Each resolves to whether nothing is left. */
  const inFlight = new Map<number, Promise<boolean>>()
  let stepRows = minStepRows
  let round: Promise<void> | undefined

  async function takeStep(prompt: OwnedPrompt): Promise<{ rolledUp: number; isLast: boolean }> {
    const [rows, startedAt] = [stepRows, performance.now()]
    const rolledUp = await rollUpSignals(db.sql, prompt, rows)
    const part = (performance.now() - startedAt) / maxStepMs
    // Halves the rows after a slow step, doubles them after a fast one.
    if (rolledUp === rows) stepRows = nextStepRows(rows, part, minStepRows, maxStepRows)
    return { rolledUp, isLast: rolledUp < rows }
  }

  async function rollUpUntil(prompt: OwnedPrompt, deadline: number): Promise<boolean> {
    do if ((await takeStep(prompt)).isLast) return true
    while (performance.now() < deadline)
    return false
  }

  function joinRollUp(prompt: OwnedPrompt, deadline: number): Promise<boolean> {
    const rolling = inFlight.get(prompt.id) ?? rollUpUntil(prompt, deadline).finally(() => inFlight.delete(prompt.id))
    inFlight.set(prompt.id, rolling)
    return rolling
  }

  async function shortenTail(prompt: OwnedPrompt, deadline: number): Promise<void> {
    for (;;) {
      if (await joinRollUp(prompt, deadline)) return
      // The rollup of another reader may have had an earlier deadline.
      if (performance.now() < deadline) continue
      newSignals.set(prompt.id, { prompt, number: Number.POSITIVE_INFINITY })
      joinRound().catch(() => {})
      throw unavailable('timeout', catchingUp, retrySeconds)
    }
  }

  async function shortenTails(organisationId: number, ids: number[], maxLength: number, startedAt: number) {
    try {
      const behind = await selectPromptsBehind(db.sql, organisationId, ids, maxLength)
      for (const id of behind) await shortenTail({ id, organisationId }, startedAt + patienceMs)
    } catch (error) {
      if (!isReadOnly(error)) throw error
    }
  }

  function remember(prompt: OwnedPrompt, number: number): void {
    const waiting = newSignals.get(prompt.id)
    if (waiting) {
      waiting.number += number
      return
    }
    // Busy prompts leave the map soon, so the oldest one in it is a quiet one.
    if (newSignals.size >= maxRemembered) newSignals.delete(newSignals.keys().next().value ?? 0)
    newSignals.set(prompt.id, { prompt, number })
  }

  /** Of the prompts with at least this many new signals, the one that has waited longest. */
  function findBehind(minimum: number): NewSignals | undefined {
    for (const waiting of newSignals.values()) if (waiting.number >= minimum) return waiting
    return undefined
  }

  /** Rolls up one step of one prompt. Returns false when no prompt is far enough behind. */
  async function takeNextStep(step: number): Promise<boolean> {
    const next = step >= stepsPerRound ? findBehind(maxBehind) : (findBehind(minStepRows) ?? findBehind(maxTailOfEach))
    if (!next) return false
    const { prompt, number } = next
    // Moves the prompt to the end of the queue.
    newSignals.delete(prompt.id)
    const { rolledUp, isLast } = await takeStep(prompt)
    // Other replicas and readers roll up too: a partial step means that nothing is left.
    if (!isLast && number > rolledUp) remember(prompt, number - rolledUp)
    return true
  }

  async function runRound(): Promise<void> {
    for (let step = 0; ; step += 1) {
      const startedAt = performance.now()
      if (!(await takeNextStep(step))) return
      if (db.load().pending > 0) await yieldFor(startedAt)
    }
  }

  function joinRound(): Promise<void> {
    round ??= runRound().finally(() => {
      round = undefined
    })
    return round
  }

  return {
    recorded: (prompt: OwnedPrompt): void => remember(prompt, 1),
    /** Rolls up the prompts that have many new signals. */
    rollUpPending: joinRound,
    /**
     * Rolls up a prompt before it is read, unless few signals are missing. Rejects with `unavailable` if that takes too
     * long; the rest is then rolled up in the background. Does nothing on a read-only database.
     */
    catchUp: ({ id, organisationId }: OwnedPrompt) => shortenTails(organisationId, [id], maxTail, performance.now()),
    /** The same for prompts of an organisation that are read together. The timeout starts at `startedAt`. */
    catchUpEach: (organisationId: number, promptIds: number[], startedAt: number) =>
      shortenTails(organisationId, promptIds, maxTailOfEach, startedAt),
  }
}
