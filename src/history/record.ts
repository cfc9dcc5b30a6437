import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { notFound } from '../errors.ts'
import type { Prompt } from '../prompts/find.ts'
import { parseEntry } from './entry.ts'
import { showEntry } from './read.ts'
import { identityOf, type KnownEntry, type Outcome, reconcile } from './reconcile.ts'
import type { HistoryEntry, NewHistoryEntry } from './schema.ts'
import {
  insertEntries,
  lockHistories,
  selectCommitEntries,
  selectMergedCommits,
  writeReconciliation,
} from './store_write.ts'

export type { Outcome }

/** An entry for the history of one prompt. */
export type PromptEntry = {
  /** The id of the prompt's row. */
  prompt: number
  entry: NewHistoryEntry
  /** The commits that a merge brought to its branch, besides its own. They get no entry. */
  covers?: string[]
  /** How often the pull request had been reopened: it may be closed again at the same commit. */
  reopenings?: number
}

/** Where an entry was read: in a clone, or in a delivery from GitHub. */
type Source = 'git' | 'github'

/** What an entry has that a client recorded. */
export const fromClient = { reopenings: 0, in_git: false, on_github: false }

/**
 * Records the entry of a client in a transaction. An entry with the same identity is returned unchanged. At `deadline` the
 * client gets an error, and nothing is recorded.
 */
export async function recordEntry(
  db: Db,
  clock: Clock,
  { id, organisationId }: Prompt,
  given: unknown,
  deadline?: number,
): Promise<{ entry: HistoryEntry; isNew: boolean }> {
  const entry = { ...parseEntry(given, clock), ...fromClient, prompt_id: id }
  return db.transaction(
    async (sql) => {
      const locked = await lockHistories(sql, [id])
      // The prompt is missing only after a failover that lost it since the look-up.
      if (!locked.has(id)) throw notFound()
      const [newId] = await insertEntries(sql, locked, [entry])
      if (newId !== undefined) return { entry: showEntry({ ...entry, id: newId }), isNew: true }
      const known = await selectCommitEntries(sql, [entry])
      const same = known.find((one) => identityOf(one) === identityOf(entry)) as KnownEntry
      return { entry: showEntry(same), isNew: false }
    },
    // Of the writes to one prompt, only one holds a connection: the others would wait for its lock.
    { tenant: organisationId, key: `history ${id}`, deadline },
  )
}

/**
 * Records the entries of one source in the caller's transaction, and says what became of each. The history is the same in
 * whichever order two sources report the same changes. `otherPrompts` are further prompts that the transaction changes:
 * all are locked here, once and in order.
 */
export async function recordEntries(
  sql: Sql,
  clock: Clock,
  given: PromptEntry[],
  source: Source,
  otherPrompts: number[] = [],
): Promise<Outcome[]> {
  const reported = given.map(({ prompt, entry, covers = [], reopenings = 0 }) => ({
    ...parseEntry(entry, clock),
    prompt_id: prompt,
    reopenings,
    in_git: source === 'git',
    on_github: source === 'github',
    covers,
  }))
  const locked = await lockHistories(sql, [...reported.map((entry) => entry.prompt_id), ...otherPrompts])
  if (reported.length === 0) return []
  if (reported.some((entry) => !locked.has(entry.prompt_id))) throw notFound()
  const commits = reported.flatMap(({ prompt_id, commit_sha, covers }) =>
    [commit_sha, ...covers].map((commit) => ({ prompt_id, commit_sha: commit })),
  )
  const known = await selectCommitEntries(sql, commits)
  const merged = await selectMergedCommits(sql, reported)
  const result = reconcile(reported, known, merged)
  await writeReconciliation(sql, locked, result)
  return result.outcomes
}

export const countChanges = (outcomes: Outcome[]): number =>
  outcomes.filter((outcome) => outcome === 'added' || outcome === 'changed').length
