// The changes of an organisation with their verdicts.
import type { Db } from '../db/client.ts'
import { commitKey, isSameCommit } from '../history/identity.ts'
import { offsetOf } from '../lib/numbered_page.ts'
import { createSharedReads } from '../lib/shared_read.ts'
import type { SignalRollup } from '../stats/rollup.ts'
import { changesPerStep, createSnapshots, readChanges, readInSteps, showImpacts } from './read.ts'
import {
  type ChangeImpact,
  type ChangeListQuery,
  groupOf,
  maxListedChanges,
  noChanges,
  verdictOrder,
} from './schema_changes.ts'
import { describeChange } from './sentence.ts'
import { type ListedChange, selectListedChanges } from './store_lists.ts'

type Page = {
  totalCount: number
  data: ChangeImpact[]
  counts: Record<keyof typeof noChanges, number>
  complete: boolean
}

/** Reads the newest changes of an organisation that match a query: worse ones first, those without signals last. */
export function createChangeList({ db, rollup }: { db: Db; rollup: SignalRollup }) {
  const share = createSharedReads<Page>()

  async function readPage(organisationId: number, query: ChangeListQuery, deadline: number): Promise<Page> {
    const startedAt = performance.now()
    const limited = <T>(read: () => Promise<T>) => db.heavyRead(organisationId, read)
    const found = await limited(() => selectListedChanges(db.sql, organisationId, query, maxListedChanges + 1))
    const listed = found.slice(0, maxListedChanges).filter(isOfCommit(query.commit))
    await limited(() => rollup.catchUpEach(organisationId, [...new Set(listed.map(promptOf))], startedAt))
    const inSnapshot = createSnapshots(db, organisationId, deadline)
    const readStep = async (some: ListedChange[]): Promise<ChangeImpact[]> => {
      const ids = some.map(({ id }) => id)
      const prompts = new Map(some.map(({ promptId, prompt }) => [promptId, prompt]))
      const known = await limited(() =>
        inSnapshot((sql) => readChanges(sql, organisationId, [...prompts.keys()], () => ids)),
      )
      return showImpacts(known, query.margin).map(({ promptId, impact }) => {
        const prompt = prompts.get(promptId) as ListedChange['prompt']
        return { prompt, ...impact, sentence: describeChange(impact) }
      })
    }
    // Half of the time is left for a transaction that is slow. Older changes are then left out.
    const isLate = () => performance.now() > (startedAt + deadline) / 2
    const impacts = await readInSteps(listed, changesPerStep, readStep, isLate)
    const counts = { ...noChanges }
    for (const impact of impacts) counts[groupOf(impact)] += 1
    const wanted = impacts.filter((impact) => query.verdict === null || groupOf(impact) === query.verdict)
    const offset = offsetOf(query)
    return {
      totalCount: wanted.length,
      data: wanted.toSorted(byVerdict).slice(offset, offset + query.limit),
      counts,
      complete: found.length <= maxListedChanges && impacts.length === listed.length,
    }
  }

  return (organisationId: number, query: ChangeListQuery, deadline: number): Promise<Page> =>
    share(JSON.stringify([organisationId, query]), () => readPage(organisationId, query, deadline))
}

const promptOf = ({ promptId }: ListedChange): number => promptId

const isOfCommit = (commit: string | null) => (change: ListedChange) =>
  commit === null || isSameCommit(commitKey(change.commitSha), commitKey(commit))

const byVerdict = (a: ChangeImpact, b: ChangeImpact): number =>
  verdictOrder.indexOf(groupOf(a)) - verdictOrder.indexOf(groupOf(b)) ||
  Date.parse(b.change.created_at) - Date.parse(a.change.created_at) ||
  b.change.id - a.change.id
