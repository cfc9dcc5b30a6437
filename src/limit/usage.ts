import type { Clock } from '../clock.ts'
import type { Db } from '../db/client.ts'
import { DeadlineError } from '../lib/deadline.ts'
import { monthOf } from '../lib/months.ts'
import { readOrganisation } from '../orgs/manage.ts'
import { listPromptsOf, readPrompts } from '../prompts/find.ts'
import { selectMonthCounts } from '../stats/read.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import type { UsageReport } from './schema.ts'

const maxPrompts = 100

/**
 * Reads the usage of this month, including everything recorded before the call. The month's count is read after those of
 * the prompts, so it is never less than their sum, unless signals were erased. Nobody reads it after the deadline.
 */
export async function readUsage(db: Db, clock: Clock, rollup: SignalRollup, organisationId: number, deadline: number) {
  const beganAt = performance.now()
  const now = clock.now()
  const month = monthOf(now)
  const days = new Map<string, number>()
  const counted: { id: number; prompt: string; total: number }[] = []
  for await (const prompts of readPrompts(db, organisationId)) {
    if (performance.now() > deadline) throw new DeadlineError()
    const publicIds = new Map(prompts.map(({ id, publicId }) => [id, publicId]))
    const ids = [...publicIds.keys()]
    await rollup.catchUpEach(organisationId, ids, beganAt)
    for (const { promptId, date, total } of await selectMonthCounts(db.sql, organisationId, ids, month.name)) {
      if (date === null) counted.push({ id: promptId, prompt: publicIds.get(promptId) as string, total })
      else days.set(date, (days.get(date) ?? 0) + total)
    }
  }
  // Of the same month as the counts, even if the next one has begun.
  const organisation = await readOrganisation(db, { now: () => now }, organisationId)
  const { plan, monthly_limit: limit, used, resets_at } = organisation
  counted.sort((a, b) => b.total - a.total || (a.prompt < b.prompt ? -1 : 1))
  const listed = counted.slice(0, maxPrompts)
  const others = counted.slice(maxPrompts)
  const promptIds = listed.map(({ id }) => id)
  const names = new Map((await listPromptsOf(db.sql, organisationId, promptIds)).map((prompt) => [prompt.id, prompt]))
  // A day that began during the call, or on the clock of another replica, is included, so that the days add up.
  const today = Math.max(now.getUTCDate(), ...[...days.keys()].map((date) => Number(date.slice(-2))))
  const dates = Array.from({ length: today }, (_, index) => `${month.name}-${String(index + 1).padStart(2, '0')}`)
  return {
    plan,
    month: month.name,
    limit,
    used,
    remaining: Math.max(limit - used, 0),
    resets_at,
    days: dates.map((date) => ({ date, total: days.get(date) ?? 0 })),
    prompts: listed.map(({ prompt, total }) => {
      // A prompt that was erased since it was counted has no name any more.
      const { name = prompt, repository = null } = names.get(prompt) ?? {}
      return { prompt, name, repository, total }
    }),
    other_prompts: { prompts: others.length, total: others.reduce((sum, { total }) => sum + total, 0) },
  } satisfies UsageReport['data']
}
