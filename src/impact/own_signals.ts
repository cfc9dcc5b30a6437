// Which signals belong to a change, for a list of them.
import type { Db } from '../db/client.ts'
import { invalidQuery } from '../lib/params.ts'
import { dayMs } from '../lib/times.ts'
import type { OwnedPrompt } from '../prompts/find.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { noChange, readChanges, readUpToDate } from './read.ts'

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

export async function readOwnSignals(
  db: Db,
  rollup: SignalRollup,
  prompt: OwnedPrompt,
  entryId: number,
  deadline: number,
): Promise<OwnSignals> {
  const known = await readUpToDate(db, rollup, prompt, deadline, (inSnapshot) =>
    inSnapshot((sql) => readChanges(sql, prompt.organisationId, [prompt.id], () => [entryId], { withEarlier: false })),
  )
  const change = known.get(entryId)
  if (!change) throw invalidQuery({ path: 'change', message: noChange })
  const { days, meanings } = change.counts
  return {
    names: [...meanings].flatMap(([name, commit]) => (commit === change.commit_key ? name : [])),
    known: [...meanings.keys()],
    named: [change.named_from, change.named_until],
    live: [change.created_at, change.live_until],
    runs: runsOf(days.map(({ date }) => Date.parse(date))),
  }
}

function runsOf(days: number[]): OwnSignals['runs'] {
  const ends = days.filter((day, index) => days[index + 1] !== day + dayMs)
  const starts = days.filter((day, index) => days[index - 1] !== day - dayMs)
  return starts
    .map((start, index) => ({ since: new Date(start), until: new Date((ends[index] as number) + dayMs) }))
    .reverse()
}
