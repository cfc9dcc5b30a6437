// Decides what endpoints are told besides changes, which are announced by the transaction that records them.
import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { whyUnavailable } from '../db/errors.ts'
import { recentDays } from '../impact/rate_change.ts'
import { type News, readNews } from '../impact/read.ts'
import { describeChange, describeRateChange } from '../impact/sentence.ts'
import { type Month, monthOf } from '../lib/months.ts'
import { yieldFor } from '../lib/periodic.ts'
import { dayMs, minuteMs } from '../lib/times.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { emitEvent } from './events.ts'
import type { EventData, EventType, Named } from './message.ts'
import {
  insertDecidedVerdicts,
  lockVerdicts,
  recordChecks,
  selectMonthlyUsages,
  selectNextPrompts,
  selectWatchedOrganisations,
  type WatchedPrompt,
} from './store_announce.ts'

export const [announceThresholdsEveryMs, checkVerdictsEveryMs] = [15_000, 5_000]

/** A month is still checked for this time after its end, for what was used after the last check. */
const lookBackMs = 5 * minuteMs

/** In percent of the monthly limit. */
const thresholds = [80, 100] as const

/** Announces that an organisation has used a share of its month: each share once a month, whatever its limit becomes. */
export async function announceThresholds(db: Db, clock: Clock): Promise<void> {
  const now = clock.now()
  const [last, current] = [monthOf(new Date(now.getTime() - lookBackMs)), monthOf(now)]
  if (last.name !== current.name) await announceMonth(db, now, last)
  await announceMonth(db, now, current)
}

async function announceMonth(db: Db, now: Date, { name: month, date }: Month): Promise<void> {
  const announcements = thresholds.map((threshold) => ({
    threshold,
    dedupKey: `usage.threshold ${month} ${threshold}`,
  }))
  const dedupKeys = announcements.map(({ dedupKey }) => dedupKey)
  const failures: unknown[] = []
  for (const usage of await selectMonthlyUsages(db.sql, date, dedupKeys)) {
    const { organisationId, id, name, used, limit, announced } = usage
    for (const { threshold, dedupKey } of announcements) {
      const isReached = limit > 0 && used * 100 >= limit * threshold
      if (!isReached || announced.includes(dedupKey)) continue
      const data = { organisation: { id, name }, month, threshold, used, limit }
      const event = { organisationId, type: 'usage.threshold', dedupKey, data, now } as const
      // One that fails must not keep the others from theirs.
      await emitEvent(db.sql, event).catch((error) => failures.push(error))
    }
  }
  if (failures.length > 0) throw failures[0]
}

/** How many prompts are checked together. A transaction holds the embedded engine's one connection, so there it is short. */
const promptsPerStep = { server: 25, embedded: 5 }
/** Without new signals, prompts are checked this often: one may no longer be archived, or have imported signals. */
const checkAnywayMs = 10 * minuteMs
/** Which changes are watched: the live one, and the newest of the last days. */
const [watchedDays, maxWatched] = [30, 25]

type Services = { db: Db; clock: Clock; rollup: SignalRollup }
type Options = { isStopping(): boolean; onFailure(error: unknown): void }

/**
 * Returns a function that announces the verdicts decided since it was last called, and once a day rates that changed.
 * Organisations take turns, a few prompts each. Runs on one replica at a time (advisory lock): the others skip.
 */
export function createVerdictCheck({ db, clock, rollup }: Services, { isStopping, onFailure }: Options) {
  const stepPrompts = db.isEmbedded ? promptsPerStep.embedded : promptsPerStep.server
  /** What was known of each organisation when all of its prompts were last checked. */
  const complete = new Map<number, { version: string; checkedAt: number }>()

  return async function checkVerdicts(): Promise<void> {
    const checkedAt = performance.now()
    const turns = new Map<number, { version: string; lastId: number; hasFailed: boolean }>()
    for (const { id, version } of await selectWatchedOrganisations(db.sql)) {
      const last = complete.get(id)
      const isUnchanged = last?.version === version && checkedAt - last.checkedAt < checkAnywayMs
      if (!isUnchanged) turns.set(id, { version, lastId: 0, hasFailed: false })
    }
    while (turns.size > 0) {
      for (const [organisationId, turn] of turns) {
        if (isStopping()) return
        const startedAt = performance.now()
        const prompts = await selectNextPrompts(db.sql, organisationId, turn.lastId, stepPrompts)
        const result = await checkPrompts(organisationId, prompts.filter(mustBeChecked))
        if (result === 'locked') return
        if (result === 'failed') turn.hasFailed = true
        turn.lastId = prompts.at(-1)?.id ?? 0
        if (prompts.length < stepPrompts) {
          turns.delete(organisationId)
          if (!turn.hasFailed) complete.set(organisationId, { version: turn.version, checkedAt })
        }
        await yieldFor(startedAt)
      }
    }
  }

  /** If the prompts cannot be checked together, each is tried alone, so that one does not stop the others. */
  async function checkPrompts(
    organisationId: number,
    prompts: WatchedPrompt[],
  ): Promise<'checked' | 'failed' | 'locked'> {
    if (prompts.length === 0) return 'checked'
    const ids = prompts.map(({ id }) => id)
    const now = clock.now()
    const since = new Date(now.getTime() - watchedDays * dayMs)
    const due = prompts.filter(({ rateDueAt }) => rateDueAt !== null && rateDueAt <= now)
    const rateIds = due.map(({ id }) => id)
    try {
      await rollup.catchUpEach(organisationId, ids, performance.now())
      const read = async (sql: Sql) =>
        (await lockVerdicts(sql)) && readNews(sql, organisationId, ids, { since, limit: maxWatched, rateIds, now })
      const news = await db.transaction(read, { tenant: 'verdicts' }, 'repeatable read')
      if (!news) return 'locked'
      const announce = (sql: Sql) => announceNews(sql, organisationId, prompts, due, news, now)
      if (news.decided.length + news.rateChanges.length > 0) await db.transaction(announce, { tenant: organisationId })
      else await announce(db.sql)
      return 'checked'
    } catch (error) {
      if (whyUnavailable(error) === 'database') throw error
      if (prompts.length === 1) onFailure(error)
      else for (const prompt of prompts) await checkPrompts(organisationId, [prompt])
      return 'failed'
    }
  }

  async function announceNews(
    sql: Sql,
    organisationId: number,
    prompts: WatchedPrompt[],
    due: WatchedPrompt[],
    { decided, rateChanges }: News,
    now: Date,
  ): Promise<void> {
    const verdicts = decided.map(({ impact: { change, verdict } }) => ({ entryId: change.id, verdict }))
    const newOnes = verdicts.length > 0 ? await insertDecidedVerdicts(sql, organisationId, verdicts, now) : []
    // Rates are checked once a day, and not again until the days that were told of are over.
    const checks = prompts.map((prompt) => {
      const days = rateChanges.some(({ promptId }) => promptId === prompt.id) ? recentDays : 1
      return due.includes(prompt) ? { ...prompt, rateDueAt: midnightAfter(now, days) } : prompt
    })
    // A week after the first check, the days that are compared with those before are all after it.
    const checkedFirst = await recordChecks(sql, organisationId, checks, midnightAfter(now, recentDays))

    type Describe<T extends EventType> = (prompt: Named) => EventData[T]
    const tell = async <T extends EventType>(promptId: number, type: T, key: string, describe: Describe<T>) => {
      const prompt = prompts.find(({ id }) => id === promptId)
      // What is found at the first check is from before anybody wanted it.
      if (!prompt || checkedFirst.includes(promptId)) return
      const data = describe({ id: prompt.publicId, name: prompt.name })
      await emitEvent(sql, { organisationId, type, dedupKey: `${type} ${key}`, promptId: prompt.publicId, data, now })
    }
    for (const { promptId, impact } of decided) {
      const { change, verdict } = impact
      if (!newOnes.some(({ entryId }) => entryId === change.id)) continue
      const sentence = describeChange(impact)
      await tell(promptId, 'impact.decided', `${change.id} ${verdict}`, (prompt) => ({ prompt, ...impact, sentence }))
    }
    for (const { promptId, change, found } of rateChanges) {
      const dueAt = due.find(({ id }) => id === promptId)?.rateDueAt?.toISOString()
      const sentence = describeRateChange(found)
      // Replicas that check at the same time have read the same time.
      await tell(promptId, 'rate.changed', `${promptId} ${dueAt}`, (prompt) => ({ prompt, change, ...found, sentence }))
    }
  }
}

/** The midnight, UTC, at which the day begins that is `days` later. */
const midnightAfter = (time: Date, days: number): Date => new Date((Math.floor(time.getTime() / dayMs) + days) * dayMs)

const mustBeChecked = ({ isWatched, newestSignal, checkedSignal }: WatchedPrompt): boolean =>
  isWatched && (checkedSignal === null || newestSignal > checkedSignal)
