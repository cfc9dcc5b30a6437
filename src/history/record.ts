import type { Clock } from '../clock.ts'
import type { Db, Sql } from '../db/client.ts'
import { untilUnlocked } from '../db/until_unlocked.ts'
import { type Detail, invalid, notFound } from '../errors.ts'
import { earlierOf, parseInstant } from '../lib/times.ts'
import type { Prompt } from '../prompts/find.ts'
import {
  type CommitOfPrompt,
  commitId,
  commitKey,
  createWholeFinder,
  type EntryToRecord,
  hasLiveAction,
  type KnownEntry,
  type ReportedEntry,
  spellingsOf,
} from './identity.ts'
import { type EntryOutcome, type KnownHistory, type Reconciliation, reconcile } from './reconcile.ts'
import {
  type EntryRow,
  type HistoryEntry,
  liveActions,
  maxAheadMs,
  type NewHistoryEntry,
  showTitledEntry,
} from './schema.ts'
import { selectCommitEntries, selectLiveNeighbours, selectMergedCommits, selectRemoved } from './store_known.ts'
import { lockHistories } from './store_write.ts'
import { type Added, addEntries, announceChanges, startLiveBranch, writeReconciliation } from './write.ts'

/** An entry for the history of a prompt, which is named by its row id. */
export type PromptEntry<Prompt = number> = {
  prompt: Prompt
  entry: NewHistoryEntry
  /** The commits that a merge brought to its branch, oldest first; its own if it changes the prompt itself. */
  covers: string[]
}

/** The origin of an entry that a client records. */
export const fromClient = { in_git: false, on_github: false, by_call: true, as_given: true }

export const expectedInstant = 'must be an ISO 8601 time with its zone, such as 2026-11-14T23:35:00Z'

/** Validates an entry by the rules of its action. */
export function parseEntry(entry: NewHistoryEntry, clock: Clock, needsUrl = true): Omit<EntryRow, 'id'> {
  const { action, user, commit_sha, branch_name, pr_number = null, pr_url = null, title = null, authors = [] } = entry
  const { name: user_name, email: user_email } = user
  const now = clock.now()
  const created_at = entry.created_at === undefined ? now : parseInstant(entry.created_at)
  const problems: Detail[] = []
  if (!created_at) problems.push({ path: '/created_at', message: expectedInstant })
  else if (created_at.getTime() > now.getTime() + maxAheadMs) {
    problems.push({ path: '/created_at', message: 'must not be more than five minutes in the future' })
  }
  if (action === 'deployed' && (pr_number !== null || pr_url !== null)) {
    problems.push({ path: '/pr_number', message: 'must be absent, with pr_url, when the action is deployed' })
  }
  if (action !== 'deployed' && (pr_number === null || (pr_url === null && needsUrl))) {
    problems.push({ path: '/pr_number', message: `must be given, with pr_url, when the action is ${action}` })
  }
  if (pr_url !== null && !/^https?:\/\/[^\s]+$/.test(pr_url)) {
    problems.push({ path: '/pr_url', message: 'must be an http or https address' })
  }
  if (!created_at || problems.length > 0) throw invalid('The history entry is not valid.', problems)
  return {
    ...{ action, user_name, user_email, commit_sha, branch_name, pr_number, pr_url, title, authors },
    created_at: earlierOf(created_at, now),
  }
}

/**
 * Records the entry of a client in a transaction. If it repeats a known entry, that one is returned. At the deadline of
 * the request the client gets an error, and nothing is recorded.
 */
export async function recordEntry(
  db: Db,
  clock: Clock,
  prompt: Prompt,
  given: NewHistoryEntry,
  deadline?: number,
): Promise<{ entry: HistoryEntry; isNew: boolean }> {
  const { id, organisationId } = prompt
  const entry = { ...parseEntry(given, clock), ...fromClient, prompt_id: id }
  // Writes to one prompt need the same lock, so they wait for each other here, without a connection.
  const permitRequest = { tenant: organisationId, key: `history ${id}`, deadline }
  return untilUnlocked(() => db.transaction((sql) => recordOne(sql, clock, prompt, entry), permitRequest))
}

/** Most entries have a new commit and repeat none, so one statement is enough. */
async function recordOne(
  sql: Sql,
  clock: Clock,
  { id, organisationId, publicId }: Prompt,
  entry: EntryToRecord,
): Promise<{ entry: HistoryEntry; isNew: boolean }> {
  const announce = async (added: Added[]) => {
    await announceChanges(sql, organisationId, added, clock.now())
    return { entry: showTitledEntry(added[0]?.entries[0] as KnownEntry), isNew: true }
  }
  const unless = { publicId, ...spellingsOf(entry.commit_sha) }
  const first = await addEntries(sql, organisationId, [entry], unless)
  if (first.length > 0) return announce(first)
  if (!(await lockHistories(sql, organisationId, [id], [publicId]))) throw notFound()
  const { added, stored } = await recordLocked(sql, organisationId, [{ ...entry, covers: [], isTimed: true }])
  return added.length > 0 ? announce(added) : { entry: showTitledEntry(stored[0] as KnownEntry), isNew: false }
}

export const parseReported = (
  { prompt, entry, covers }: PromptEntry,
  source: 'git' | 'github',
  clock: Clock,
): ReportedEntry => ({
  // Git does not know the address of a pull request of the host that the repository was at before.
  ...parseEntry(entry, clock, source !== 'git'),
  prompt_id: prompt,
  in_git: source === 'git',
  on_github: source === 'github',
  by_call: false,
  as_given: false,
  covers,
  isTimed: entry.created_at !== undefined,
})

/**
 * Records what a source reports in the caller's transaction, and says what became of each entry. Also locks
 * `otherPrompts`, which the transaction changes later: all prompts must be locked at the same time and in order. With
 * `publicIds`, every prompt must have one of them. Prompts without a live branch get `liveBranch`.
 */
export async function recordReported(
  sql: Sql,
  clock: Clock,
  organisationId: number,
  reported: ReportedEntry[],
  {
    otherPrompts = [],
    publicIds,
    liveBranch,
  }: { otherPrompts?: number[]; publicIds?: string[]; liveBranch?: string | undefined } = {},
): Promise<Omit<Reconciliation, 'inserts' | 'mergedCommits'>> {
  const prompts = [...reported.map((entry) => entry.prompt_id), ...otherPrompts]
  if (!(await lockHistories(sql, organisationId, prompts, publicIds))) throw notFound()
  if (liveBranch !== undefined) await startLiveBranch(sql, clock, organisationId, prompts, liveBranch)
  if (reported.length === 0) return { outcomes: [], stored: [], updates: [], deletes: [] }
  const result = await recordLocked(sql, organisationId, reported)
  await announceChanges(sql, organisationId, result.added, clock.now())
  return result
}

/** Records entries in histories of an organisation that the caller has locked. */
export async function recordLocked(sql: Sql, organisationId: number, reported: ReportedEntry[]) {
  const result = reconcile(reported, await readKnown(sql, organisationId, reported))
  return { ...result, added: await writeReconciliation(sql, organisationId, result) }
}

/** Reads the part of the histories that `reconcile` needs. */
export async function readKnown(sql: Sql, organisationId: number, reported: ReportedEntry[]): Promise<KnownHistory> {
  const [merged, removed] = await Promise.all([
    selectMergedCommits(sql, organisationId, reported),
    selectRemoved(sql, organisationId, reported),
  ])
  const ofReported = reported.map(({ prompt_id, commit_sha, covers }) => ({ prompt_id, shas: [commit_sha, ...covers] }))
  const ofMerges = merged.map(({ prompt_id, merge_sha }) => ({ prompt_id, shas: [merge_sha] }))
  const commits = [...ofReported, ...ofMerges].flatMap(({ prompt_id, shas }) =>
    shas.map((sha) => ({ prompt_id, ...spellingsOf(sha) })),
  )
  const entries = await selectCommitEntries(sql, organisationId, commits)
  // All reported entries are of one source. Sync and the webhook report a commit once, so only clients report rollbacks.
  const mayRollBack = reported[0]?.by_call || entries.some((entry) => !entry.in_git && !entry.on_github)
  const again = mayRollBack ? findLiveAgain(reported, entries) : []
  const live = again.length > 0 ? await selectLiveNeighbours(sql, organisationId, again, liveActions) : []
  return { entries, merged, removed, live }
}

/**
 * Finds the reported live entries whose commit has a second entry. Adds the spellings of the commit, so that none of them
 * counts as another commit.
 */
function findLiveAgain(reported: ReportedEntry[], known: KnownEntry[]) {
  const all = [...known, ...reported]
  const findWhole = createWholeFinder(all)
  const commitOf = (entry: CommitOfPrompt) => commitId({ ...entry, commit_sha: findWhole(entry) })
  const ofCommit = Map.groupBy(all, commitOf)
  const keys = new Map(
    [...ofCommit].map(([commit, own]) => [commit, [...new Set(own.map(({ commit_sha }) => commitKey(commit_sha)))]]),
  )
  return reported
    .filter((entry) => hasLiveAction(entry) && Number(ofCommit.get(commitOf(entry))?.length) > 1)
    .map((entry) => ({ ...entry, spellings: keys.get(commitOf(entry)) as string[] }))
}

export const countChanges = (outcomes: EntryOutcome[]): number =>
  outcomes.filter((outcome) => outcome === 'added' || outcome === 'changed').length
