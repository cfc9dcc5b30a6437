import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { whyUnavailable } from '../db/errors.ts'
import { type DecidedImpact, readDecidedImpacts } from '../impact/read.ts'
import { describeChange } from '../impact/sentence.ts'
import { randomBase62 } from '../lib/base62.ts'
import { yieldFor } from '../lib/periodic.ts'
import { dayMs } from '../lib/times.ts'
import { readPrompts } from '../prompts/find.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { emitEvent } from './events.ts'
import {
  hasSignalsAfter,
  holdLease,
  insertDecided,
  type PromptToLookAt,
  recordLooks,
  releaseLease,
  selectDecided,
  selectPromptsToLookAt,
  selectWatched,
  type WatchedOrganisation,
} from './store_events.ts'

type Services = { db: Db; clock: Clock; rollup: SignalRollup }
type Options = { isStopping(): boolean; onFailure(error: unknown): void }

/** How often new signals are looked for. */
export const lookEveryMs = 5_000
/** Without new signals, prompts are looked at this often: one may no longer be archived, or have imported signals. */
const lookAnywayMs = 600_000
/** A replica that was killed is replaced after this time. */
const [leaseSeconds, renewEveryMs] = [20, 5_000]
/** How many prompts are looked at together. A transaction holds the embedded engine's one connection. */
const [promptsPerStep, promptsPerEmbeddedStep] = [50, 10]
/** Which changes are watched: the live one, and the newest of the last days. */
const [watchedDays, maxWatched] = [30, 25]

/** Goes through the prompts of an organisation. Each step returns false if it failed for one. */
type Pass = { steps: AsyncGenerator<boolean>; startedAt: number; state: string; isDone: boolean; hasFailed: boolean }

/** A change of a prompt whose verdict is decided. */
type Found = { prompt: PromptToLookAt; impact: DecidedImpact }

/**
 * Tells endpoints of decided verdicts. Runs on one replica at a time (lease), takes one step of each organisation in turn,
 * and sleeps as long as each step took.
 */
export function createVerdictWatch({ db, clock, rollup }: Services, { isStopping, onFailure }: Options) {
  const holder = randomBase62(16)
  const stepSize = db.isEmbedded ? promptsPerEmbeddedStep : promptsPerStep
  let renewedAt = Number.NEGATIVE_INFINITY
  /** The last pass over each organisation that looked at every prompt. */
  const complete = new Map<number, Pass>()

  async function keepsLease(): Promise<boolean> {
    if (isStopping()) return false
    if (performance.now() - renewedAt < renewEveryMs) return true
    const isHeld = await holdLease(db.sql, holder, leaseSeconds)
    renewedAt = isHeld ? performance.now() : Number.NEGATIVE_INFINITY
    return isHeld
  }

  /** Goes through the prompts of an organisation, a few per step. */
  async function* lookAtAll(organisationId: number): AsyncGenerator<boolean, void> {
    for await (const page of readPrompts(db, organisationId)) {
      const ids = page.map(({ id }) => id)
      const prompts = await selectPromptsToLookAt(db.sql, organisationId, ids)
      yield true
      for (let start = 0; start < prompts.length; start += stepSize) {
        yield await lookAt(organisationId, prompts.slice(start, start + stepSize))
      }
    }
  }

  /** If the prompts cannot be looked at together, each is tried alone, so that one does not stop the others. */
  async function lookAt(organisationId: number, prompts: PromptToLookAt[]): Promise<boolean> {
    try {
      const ids = prompts.map(({ id }) => id)
      await rollup.catchUpEach(organisationId, ids, performance.now())
      const found = await db.transaction(
        (sql) => findNew(sql, organisationId, prompts),
        { tenant: holder },
        'repeatable read',
      )
      if (found.length === 0) await recordLooks(db.sql, organisationId, prompts)
      else await db.transaction((sql) => tell(sql, organisationId, prompts, found), { tenant: organisationId })
      return true
    } catch (error) {
      if (whyUnavailable(error) === 'database') throw error
      if (prompts.length === 1) onFailure(error)
      else for (const prompt of prompts) await lookAt(organisationId, [prompt])
      return false
    }
  }

  /** The decided verdicts that the watched changes of these prompts have not had before. */
  async function findNew(sql: Sql, organisationId: number, prompts: PromptToLookAt[]): Promise<Found[]> {
    const since = new Date(clock.now().getTime() - watchedDays * dayMs)
    const ids = prompts.map(({ id }) => id)
    const decided = await readDecidedImpacts(sql, organisationId, ids, since, maxWatched)
    if (decided.length === 0) return []
    const known = await selectDecided(
      sql,
      organisationId,
      decided.map(({ impact }) => impact.change.id),
    )
    const isNew = ({ change, verdict }: DecidedImpact) =>
      !known.some((one) => one.entryId === change.id && one.verdict === verdict)
    return prompts.flatMap((prompt) =>
      decided
        .filter(({ promptId, impact }) => promptId === prompt.id && isNew(impact))
        .map(({ impact }) => ({ prompt, impact })),
    )
  }

  async function tell(sql: Sql, organisationId: number, prompts: PromptToLookAt[], found: Found[]): Promise<void> {
    const now = clock.now()
    for (const { prompt, impact } of found) {
      const { change, verdict } = impact
      const isFirst = await insertDecided(sql, organisationId, { entryId: change.id, verdict }, now)
      if (!isFirst || !(await isNews(sql, organisationId, prompt, impact))) continue
      await emitEvent(sql, {
        organisationId,
        type: 'impact.decided',
        once: `impact.decided ${change.id} ${verdict}`,
        promptId: prompt.publicId,
        data: { prompt: { id: prompt.publicId, name: prompt.name }, ...impact, sentence: describeChange(impact) },
        now,
      })
    }
    await recordLooks(sql, organisationId, prompts)
  }

  const isUnchanged = ({ id, state }: WatchedOrganisation): boolean => {
    const last = complete.get(id)
    return last?.state === state && performance.now() - last.startedAt < lookAnywayMs
  }

  /** One pass over the organisations with new signals. One that is done begins again if the others take long. */
  async function look(): Promise<void> {
    const passes = new Map<number, Pass>()
    for (let isDone = false; !isDone; ) {
      isDone = true
      for (const organisation of await selectWatched(db.sql)) {
        const { id, state } = organisation
        const startedAt = performance.now()
        let pass = passes.get(id)
        if (!pass || pass.isDone) {
          if ((pass && startedAt - pass.startedAt < lookEveryMs) || isUnchanged(organisation)) continue
          pass = { steps: lookAtAll(id), startedAt, state, isDone: false, hasFailed: false }
          passes.set(id, pass)
        }
        isDone = false
        if (!(await keepsLease())) return
        const { value, done } = await pass.steps.next()
        if (value === false) pass.hasFailed = true
        pass.isDone = done === true
        if (pass.isDone && !pass.hasFailed) complete.set(id, pass)
        await yieldFor(startedAt)
      }
    }
  }

  return {
    look,
    /** Lets another replica go on without waiting for the end of the lease. */
    async stop(): Promise<void> {
      if (renewedAt > Number.NEGATIVE_INFINITY) await releaseLease(db.sql, holder).catch(() => {})
    },
  }
}

/**
 * A verdict at the first look at a prompt may be old: the organisation had no endpoint then. It is news if at least a tenth
 * of the change's signals came since the endpoint was created.
 */
const isNews = async (
  sql: Sql,
  organisationId: number,
  prompt: PromptToLookAt,
  { signals }: DecidedImpact,
): Promise<boolean> =>
  prompt.createdAfterSignal === null ||
  hasSignalsAfter(sql, organisationId, prompt, prompt.createdAfterSignal, Math.ceil(signals.total / 10))
