import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { monthOf } from '../lib/months.ts'
import type { SignalCounter } from './count.ts'
import { selectUsage } from './store_reads.ts'

export type Usage = {
  plan: string
  month: string
  limit: number
  used: number
  remaining: number
  resets_at: string
  /** From the first of the month to today, UTC. */
  days: { date: string; total: number }[]
  /** Those with the most signals first. */
  prompts: { prompt: string; total: number }[]
  /** The prompts that are not listed, together. */
  other_prompts: { prompts: number; total: number }
}

const maxPrompts = 100

/** What an organisation has used of this month. What was recorded before the call is in the result. */
export async function readUsage(db: Db, clock: Clock, counter: SignalCounter, organisationId: number): Promise<Usage> {
  const now = clock.now()
  const month = monthOf(now)
  await counter.catchUpAll(organisationId)
  const row = await selectUsage(db.sql, organisationId, month.name, maxPrompts)
  // The organisation is missing only after a failover that lost it.
  if (!row) throw notFound()
  const { plan, limit, used, days, prompts, otherPrompts } = row
  const totals = new Map(days.map(({ date, total }) => [date, total]))
  // A day that has begun since, or by the clock of another replica, is shown too: the days add up to what is recorded.
  const today = Math.max(now.getUTCDate(), ...days.map(({ date }) => Number(date.slice(-2))))
  const dates = Array.from({ length: today }, (_, index) => `${month.name}-${pad(index + 1)}`)
  return {
    plan,
    month: month.name,
    limit,
    used,
    remaining: Math.max(limit - used, 0),
    resets_at: month.resetsAt,
    days: dates.map((date) => ({ date, total: totals.get(date) ?? 0 })),
    prompts,
    other_prompts: otherPrompts,
  }
}

const pad = (day: number): string => String(day).padStart(2, '0')
