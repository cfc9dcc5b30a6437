import type { Sql } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { showTitledEntry } from '../history/schema.ts'
import { totalOf } from '../lib/counts.ts'
import { dayMs } from '../lib/times.ts'
import type { Prompt } from '../prompts/find.ts'
import { type ChangeCounts, type DayCounts, daysOf } from './attribute.ts'
import { effectiveCounts, verdictFor } from './compare.ts'
import { differenceOf } from './rate.ts'
import { readChangeCounts } from './read.ts'
import type { ChangeDays } from './schema_compare.ts'

/** Compares a change with the one before it, day by day since it went live, by the data of today. */
export async function readChangeDays(sql: Sql, prompt: Prompt, entryId: number, margin: number): Promise<ChangeDays> {
  const { changes, counts } = await readChangeCounts(sql, prompt.organisationId, [prompt.id], [entryId])
  const change = changes.find(({ id }) => id === entryId)
  if (!change) throw notFound()
  const before = changes.find(({ id }) => id === change.before_id)
  const own = counts.get(entryId) as ChangeCounts
  const countsBefore = before && (counts.get(before.id) as ChangeCounts)
  const [baseDays, headDays] = [countsBefore ? daysOf(countsBefore) : null, daysOf(own)]
  return {
    change: showTitledEntry(change),
    before: before ? showTitledEntry(before) : null,
    days: differenceByDay(baseDays, headDays, margin),
    health: {
      before: countsBefore && baseDays ? describeHealth(countsBefore, baseDays.length) : null,
      change: describeHealth(own, headDays.length),
      jumps: findJumps([...(baseDays ?? []), ...headDays]),
    },
  }
}

function describeHealth(counts: ChangeCounts, days: number) {
  const signals = totalOf(counts)
  return { days, signals, named: signals === 0 ? null : Math.round((counts.by_commit / signals) * 1e4) / 1e4 }
}

/** More days are left out, oldest first. */
const maxShownDays = 366

/**
 * The difference after each day of a change: between its signals up to then and all those of the change before it. Null for
 * the first change.
 */
function differenceByDay(baseDays: DayCounts[] | null, headDays: DayCounts[], margin: number) {
  const first = Math.max(headDays.length - maxShownDays, 0)
  return headDays.slice(first).map(({ date, positive, negative }, index) => {
    const { designEffect, base, head } = effectiveCounts(baseDays ?? [], headDays.slice(0, first + index + 1))
    const difference = differenceOf(base, head)
    return {
      date,
      positive,
      negative,
      difference,
      verdict: baseDays && verdictFor(difference, margin),
      design_effect: difference && designEffect,
    }
  })
}

const [daysBefore, jumpFactor, fewestSignals] = [7, 3, 20]

/**
 * Finds the days on which the number of signals jumped to three times the usual one, or to a third of it. Usual is the median
 * of the 7 days before. The last day may not be over, so it can only have too many.
 */
export function findJumps(days: DayCounts[]) {
  const volumes = fillDays(days)
  const jumps = volumes.map(({ date, signals }, index) => {
    const earlier = volumes.slice(Math.max(index - daysBefore, 0), index).map((day) => day.signals)
    const usual = earlier.toSorted((a, b) => a - b)[Math.floor(daysBefore / 2)] ?? 0
    if (earlier.length < daysBefore || Math.max(signals, usual) < fewestSignals) return null
    const isLow = signals * jumpFactor <= usual && index < volumes.length - 1
    return isLow || signals >= usual * jumpFactor ? { date, signals, usual } : null
  })
  // A new level is one jump, although it takes some days to become usual.
  return jumps.flatMap((jump, index) => (jump && !jumps[index - 1] ? [jump] : []))
}

/** The signals of every day from the first to the last, including days without any. */
function fillDays(days: DayCounts[]): { date: string; signals: number }[] {
  const signals = new Map<string, number>()
  for (const day of days) signals.set(day.date, (signals.get(day.date) ?? 0) + totalOf(day))
  const times = [...signals.keys()].map((date) => Date.parse(date))
  const [first, last] = [Math.min(...times), Math.max(...times)]
  if (times.length === 0) return []
  const start = Math.max(first, last - maxShownDays * dayMs)
  return Array.from({ length: (last - start) / dayMs + 1 }, (_, index) => {
    const date = new Date(start + index * dayMs).toISOString().slice(0, 10)
    return { date, signals: signals.get(date) ?? 0 }
  })
}
