import type { Db, Sql } from '../db/client.ts'
import { notFound } from '../errors.ts'
import { showTitledEntry } from '../history/read.ts'
import type { Prompt } from '../prompts/find.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { type ChangeCounts, daysOf } from './attribute.ts'
import { differenceByDay, findJumps } from './days.ts'
import { totalOf } from './rate.ts'
import { readCounts } from './read.ts'
import type { ChangeDays } from './schema_days.ts'

/** How a change compares with the one before it, day by day since it went live, as the data is today. */
export async function readChangeDays(
  db: Db,
  rollup: SignalRollup,
  prompt: Prompt,
  entryId: number,
  margin: number,
): Promise<ChangeDays> {
  await rollup.catchUp(prompt)
  const read = async (sql: Sql) => {
    const { changes, counts } = await readCounts(sql, prompt, [entryId])
    const change = changes.find(({ id }) => id === entryId)
    if (!change) throw notFound()
    const before = changes.find(({ id }) => id === change.before_id)
    const own = counts.get(entryId) as ChangeCounts
    const earlier = before && (counts.get(before.id) as ChangeCounts)
    const [ofBefore, ofOwn] = [earlier ? daysOf(earlier) : [], daysOf(own)]
    return {
      change: showTitledEntry(change),
      before: before ? showTitledEntry(before) : null,
      days: differenceByDay(ofBefore, ofOwn, margin),
      health: {
        before: earlier ? describeHealth(earlier, ofBefore.length) : null,
        change: describeHealth(own, ofOwn.length),
        jumps: findJumps([...ofBefore, ...ofOwn]),
      },
    }
  }
  return db.transaction(read, { tenant: prompt.organisationId }, 'repeatable read')
}

function describeHealth(counts: ChangeCounts, days: number) {
  const signals = totalOf(counts)
  return { days, signals, named: signals === 0 ? null : Math.round((counts.by_commit / signals) * 1e4) / 1e4 }
}
