import type { Db, Sql } from '../db/client.ts'
import { showTitledEntry } from '../history/read.ts'
import { invalidQuery } from '../lib/params.ts'
import { latestInstant } from '../lib/times.ts'
import type { Prompt } from '../prompts/find.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import type { DayPair } from './block.ts'
import { splitBounds } from './bounds.ts'
import { addCounts } from './rate.ts'
import { type ResolvedCommit, resolveCommit } from './resolve_commit.ts'
import type { SideBySide } from './schema_compare.ts'
import { type CompareQuery, shortestHash } from './schema_params.ts'
import { compareSides } from './side_by_side.ts'
import { selectCommitDays, selectEntryOfCommit, selectKnownCommits } from './store_compare.ts'

/** More commits with the same beginning are ambiguous anyway. */
const maxKnownCommits = 100
const earliestInstant = new Date('0001-01-01T00:00:00Z')

/** Compares two versions of a prompt that ran at the same time, by the commits that signals name. */
export async function readCompare(db: Db, rollup: SignalRollup, prompt: Prompt, query: CompareQuery) {
  await rollup.catchUp(prompt)
  const read = (sql: Sql) => readSides(sql, prompt, query)
  return db.transaction(read, { tenant: prompt.organisationId }, 'repeatable read')
}

async function readSides(sql: Sql, prompt: Prompt, query: CompareQuery): Promise<SideBySide> {
  const begins = [query.base, query.head].map((commit) => commit.slice(0, shortestHash))
  const known = await selectKnownCommits(sql, prompt, [...new Set(begins)], maxKnownCommits)
  const resolve = (path: 'base' | 'head'): ResolvedCommit => {
    const found = resolveCommit(query[path], known)
    if (found) return found
    throw invalidQuery({ path, message: 'must be longer: several commits begin with it' })
  }
  const [base, head] = [resolve('base'), resolve('head')]
  if (base.commit === head.commit) throw invalidQuery({ path: 'head', message: 'must be another commit than base' })
  const bounds = splitBounds([query.since ?? earliestInstant, query.until ?? new Date(latestInstant)])
  const [counts, ...changes] = await Promise.all([
    selectCommitDays(sql, prompt, [...base.texts, ...head.texts], bounds),
    ...[base, head].map(({ texts }) => selectEntryOfCommit(sql, prompt, texts)),
  ])
  const countsOf = (own: typeof counts, { texts }: ResolvedCommit) =>
    addCounts(own.filter(({ text }) => texts.includes(text)))
  const days: DayPair[] = [...Map.groupBy(counts, ({ day }) => day)]
    .map(([date, own]) => ({ date, base: countsOf(own, base), head: countsOf(own, head) }))
    .toSorted((a, b) => (a.date < b.date ? -1 : 1))
  const [ofBase, ofHead] = changes.map((change) => (change ? showTitledEntry(change) : null))
  const { base: baseSide, head: headSide, ...compared } = compareSides(days, query.margin)
  return {
    base: { commit: base.commit, change: ofBase ?? null, ...baseSide },
    head: { commit: head.commit, change: ofHead ?? null, ...headSide },
    ...compared,
  }
}
