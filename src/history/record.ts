import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { classifyError } from '../db/errors.ts'
import { type Detail, invalid, notFound } from '../errors.ts'
import { yieldFor } from '../lib/periodic.ts'
import { parseInstant } from '../lib/times.ts'
import { createValidator } from '../lib/validate.ts'
import type { Prompt } from '../prompts/find.ts'
import { showTitledEntry } from './read.ts'
import { identityOf, type Outcome, reconcile } from './reconcile.ts'
import { type HistoryEntry, NewHistoryEntry } from './schema.ts'
import type { EntryRow } from './store.ts'
import {
  insertEntries,
  lockHistories,
  selectCommitEntries,
  selectMergedCommits,
  writeReconciliation,
} from './store_write.ts'

export type { Outcome }

/** An entry for the history of the prompt with this row id. */
export type PromptEntry = {
  prompt: number
  entry: NewHistoryEntry
  /** The commits that a merge brought to its branch; may include its own. They get no entry. */
  covers?: string[]
  /** How often the pull request had been reopened: it may be closed again at the same commit. */
  reopenings?: number
}

/** What an entry has that a client recorded. */
export const fromClient = { reopenings: 0, in_git: false, on_github: false }

const retryMs = 20

const validate = createValidator(NewHistoryEntry, 'The history entry')

export const expectedInstant = 'must be an ISO 8601 time with its zone, such as 2026-11-14T23:35:00Z'

/** Validates an entry by its schema and by the rules of its action. */
export function parseEntry(given: unknown, clock: Clock): Omit<EntryRow, 'id'> {
  const entry = validate(given)
  const { action, user, commit_sha, branch_name, pr_number = null, pr_url = null, title = null } = entry
  const { name: user_name, email: user_email } = user
  const created_at = entry.created_at === undefined ? clock.now() : parseInstant(entry.created_at)
  const problems: Detail[] = []
  if (!created_at) problems.push({ path: '/created_at', message: expectedInstant })
  if (action === 'deployed' && (pr_number !== null || pr_url !== null)) {
    problems.push({ path: '/pr_number', message: 'must be absent, with pr_url, when the action is deployed' })
  }
  if (action !== 'deployed' && (pr_number === null || pr_url === null)) {
    problems.push({ path: '/pr_number', message: `must be given, with pr_url, when the action is ${action}` })
  }
  if (pr_url !== null && !/^https?:\/\/[^\s]+$/.test(pr_url)) {
    problems.push({ path: '/pr_url', message: 'must be an http or https address' })
  }
  if (!created_at || problems.length > 0) throw invalid('The history entry is not valid.', problems)
  return { action, user_name, user_email, commit_sha, branch_name, pr_number, pr_url, created_at, title }
}

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
  // Writes to one prompt need the same lock, so they wait for each other here, without a connection.
  const permitRequest = { tenant: organisationId, key: `history ${id}`, deadline }
  for (;;) {
    const startedAt = performance.now()
    try {
      return await db.transaction(async (sql) => {
        const [newId] = await insertEntries(sql, [entry])
        if (newId !== undefined) return { entry: showTitledEntry({ ...entry, id: newId }), isNew: true }
        const known = await selectCommitEntries(sql, [entry])
        const same = known.find((one) => identityOf(one) === identityOf(entry))
        // The prompt is missing only after a failover that lost it since the look-up.
        if (!same) throw notFound()
        return { entry: showTitledEntry(same), isNew: false }
      }, permitRequest)
    } catch (error) {
      // Retry until the deadline while another transaction, such as an import, holds the prompt.
      if (classifyError(error) !== 'lock_timeout') throw error
      await yieldFor(startedAt - retryMs)
    }
  }
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
  source: 'git' | 'github',
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
  const prompts = [...reported.map((entry) => entry.prompt_id), ...otherPrompts]
  if (!(await lockHistories(sql, prompts))) throw notFound()
  if (reported.length === 0) return []
  const commits = reported.flatMap(({ prompt_id, commit_sha, covers }) =>
    [commit_sha, ...covers].map((commit) => ({ prompt_id, commit_sha: commit })),
  )
  const known = await selectCommitEntries(sql, commits)
  const merged = await selectMergedCommits(sql, reported)
  const result = reconcile(reported, known, merged)
  await writeReconciliation(sql, result)
  return result.outcomes
}

export const countChanges = (outcomes: Outcome[]): number =>
  outcomes.filter((outcome) => outcome === 'added' || outcome === 'changed').length
