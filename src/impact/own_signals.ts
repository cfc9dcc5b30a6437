// Which signals belong to a change, for a list of them.
import type { Db } from '../db/client.ts'
import { createCommitFinder } from '../history/identity.ts'
import { invalidQuery } from '../lib/params.ts'
import { dayMs } from '../lib/times.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { attribute, type ChangeCounts, daysOf } from './attribute.ts'
import { countSignals, noChange, readChanges, readUpToDate } from './read.ts'

/** The rule of `attribute` for one change, with the names that signals have for commits. */
export type OwnSignals = {
  /** The names of its commit, and those of the commits of all changes. */
  names: string[]
  known: string[]
  named: [from: Date | null, until: Date | null]
  live: [from: Date, until: Date | null]
  /** The days with its signals, as runs of consecutive days, newest first. */
  runs: { since: Date; until: Date }[]
}

export const readOwnSignals = (db: Db, rollup: SignalRollup, prompt: OwnedPrompt, entryId: number, deadline: number) =>
  readUpToDate(db, rollup, prompt, deadline, (inSnapshot) =>
    inSnapshot(async (sql): Promise<OwnSignals> => {
      const { organisationId, id } = prompt
      const { changes, commits } = await readChanges(sql, organisationId, [id], [entryId])
      const change = changes.find((one) => one.id === entryId)
      if (!change) throw invalidQuery({ path: 'change', message: noChange })
      const [counted] = await countSignals(sql, organisationId, [change], commits)
      const { bounds, all, signals } = counted as NonNullable<typeof counted>
      const counts = attribute([change], bounds, all, signals).get(entryId) as ChangeCounts
      const names = [...new Set(signals.flatMap(({ named_commit }) => named_commit ?? []))]
      const find = createCommitFinder(all)
      return {
        names: names.filter((name) => find(name) === change.commit_key),
        known: names.filter((name) => find(name) !== null),
        named: [change.named_from, change.named_until],
        live: [change.created_at, change.live_until],
        runs: runsOf(daysOf(counts).map(({ date }) => Date.parse(date))),
      }
    }),
  )

function runsOf(days: number[]): OwnSignals['runs'] {
  const ends = days.filter((day, index) => days[index + 1] !== day + dayMs)
  const starts = days.filter((day, index) => days[index - 1] !== day - dayMs)
  return starts
    .map((start, index) => ({ since: new Date(start), until: new Date((ends[index] as number) + dayMs) }))
    .reverse()
}
