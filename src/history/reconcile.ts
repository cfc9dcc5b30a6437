// Decides how the entries of one source change a history. A source is a clone (git), GitHub's deliveries or a client. The
// result does not depend on the order of the reports, nor on repeats; docs/interface.md and docs/git.md have the rules.
import { isDeepStrictEqual } from 'node:util'
import {
  type CommitOfPrompt,
  commitId,
  commitKey,
  comparePlaces,
  createSameRunFinder,
  createWholeFinder,
  type EntryIdentity,
  type EntryToRecord,
  hasLiveAction,
  identityOf,
  type KnownEntry,
  type LiveEntry,
  OrderedEntries,
  type ReportedEntry,
} from './identity.ts'
import { showTitledEntry } from './schema.ts'

export type MergedCommit = { prompt_id: number; branch_name: string; commit_sha: string }

/** With the commit of the merge that brought it. */
type CommitOfMerge = MergedCommit & { merge_sha: string }

/** What became of an entry. A covered commit has no entry, because it belongs to a merge. */
export type Outcome = 'added' | 'changed' | 'known' | 'covered'

/** Outcomes and inserts are in the order of the reported entries. */
export type Reconciliation = {
  outcomes: Outcome[]
  /** The known entry that each reported one repeats, as it is now; undefined for one that is added, covered or merged. */
  repeated: (KnownEntry | undefined)[]
  inserts: EntryToRecord[]
  /** Readers do not see every update: who reported an entry is not shown. */
  updates: { from: KnownEntry; to: KnownEntry; isVisible: boolean }[]
  deletes: KnownEntry[]
  mergedCommits: CommitOfMerge[]
}

export type KnownHistory = {
  /** All entries of the commits that are reported or covered, by any of their spellings. */
  entries: KnownEntry[]
  /** The reported commits that belong to a merge. */
  merged: MergedCommit[]
  /** The removed entries of the reported commits. */
  removed: EntryIdentity[]
  /** The nearest live entries of other commits on the branch of each reported entry, before and after it. */
  live: LiveEntry[]
}

const newId = 2 ** 52

/** The caller has locked the prompts, so that nothing changes before the result is written. */
export function reconcile(reported: ReportedEntry[], known: KnownHistory): Reconciliation {
  const findWhole = createWholeFinder([...known.entries, ...reported])
  const withWholeCommit = <T extends CommitOfPrompt>(entry: T): T => {
    const commit_sha = findWhole(entry)
    return commit_sha === entry.commit_sha ? entry : { ...entry, commit_sha }
  }
  const entries = new KnownEntries(known.entries.map(withWholeCommit))
  const numbered = numberEntries(reported.map(withWholeCommit), entries)
  const live = Map.groupBy([...known.live.map(withWholeCommit), ...numbered.filter(hasLiveAction)], branchKey)
  const sameRunFinders = new Map([...live].map(([branch, ofBranch]) => [branch, createSameRunFinder(ofBranch)]))
  const removed = new Set(known.removed.map(identityOf))
  const covered = new Set(known.merged.map(mergedKey))
  const mergedCommits: CommitOfMerge[] = []
  const outcomes = new Map<ReportedEntry, Outcome>()
  const repeatedBy = new Map<ReportedEntry, KnownEntry>()
  const inserts: EntryToRecord[] = []
  const inserted = new OrderedEntries(identityOf)

  const findRepeated = (entry: ReportedEntry & KnownEntry, same: readonly KnownEntry[]): KnownEntry | undefined => {
    // A pull request may be closed again at the same commit. A client may report a closing later than it was.
    const isSame = (one: KnownEntry) =>
      Number(one.created_at) === Number(entry.created_at) || (!one.on_github && one.created_at > entry.created_at)
    if (entry.action === 'pr_closed' && entry.on_github) return same.find(isSame)
    // A commit lands on a branch once, even if sync and the webhook report different times.
    const landed = entry.by_call ? undefined : same.find((one) => one.in_git || one.on_github)
    if (landed || !entry.isTimed || !hasLiveAction(entry)) return landed ?? same[0]
    return sameRunFinders.get(branchKey(entry))?.(entry, same)
  }

  // Merges come first, because they cover commits that are reported with them.
  for (const merge of numbered.filter((entry) => entry.action === 'pr_merged' && !entry.by_call)) {
    // GitHub knows the number of the pull request. Git has only the commit message, which may name another.
    if (merge.in_git && findOtherMerges(entries, merge).some((entry) => entry.on_github)) {
      outcomes.set(merge, 'covered')
      continue
    }
    mergedCommits.push(...commitsOf(merge))
    for (const commit of commitsOf(merge)) covered.add(mergedKey(commit))
    const outcome = applyMerge(entries, merge, findRepeated(merge, entries.byIdentity.of(merge)))
    if (outcome) outcomes.set(merge, outcome)
  }
  for (const entry of numbered) {
    if (outcomes.has(entry)) continue
    const repeated = findRepeated(entry, entries.byIdentity.of(entry))
    if (entry.action === 'deployed' && !entry.by_call && covered.has(mergedKey(entry))) outcomes.set(entry, 'covered')
    else if (repeated) {
      const combined = combine(repeated, entry)
      repeatedBy.set(entry, combined)
      outcomes.set(entry, entries.replace(repeated, combined))
    } else if (findRepeated(entry, inserted.of(entry))) outcomes.set(entry, 'known')
    else if (!entry.by_call && removed.has(identityOf(entry))) outcomes.set(entry, 'known')
    else {
      const { covers: _, isTimed: __, id: ___, ...toInsert } = entry
      outcomes.set(entry, 'added')
      inserts.push(toInsert)
      inserted.add(entry)
    }
  }
  return {
    outcomes: numbered.map((entry) => outcomes.get(entry) as Outcome),
    repeated: numbered.map((entry) => repeatedBy.get(entry)),
    inserts,
    updates: known.entries.flatMap((from) => {
      const to = entries.byId.get(from.id) ?? from
      const isVisible = to !== from && isVisibleChange(from, to)
      const isChanged = isVisible || reporters.some((reporter) => from[reporter] !== to[reporter])
      return isChanged ? { from, to, isVisible } : []
    }),
    deletes: known.entries.filter(({ id }) => !entries.byId.has(id)),
    mergedCommits,
  }
}

/**
 * Gives each entry an id, by which those of one instant are ordered: a repeated one that of the known entry, a new one a
 * higher id than all known ones. But one that comes before a repeated one of its instant stays before it, or a repeated
 * import would find rollbacks that the first one did not.
 */
function numberEntries(reported: ReportedEntry[], entries: KnownEntries): (ReportedEntry & KnownEntry)[] {
  const nextRepeated = new Map<string, number>()
  const lastFirst = reported.map((entry, index) => ({ entry, index })).reverse()
  const numbered = lastFirst.map(({ entry, index }) => {
    const instant = `${branchKey(entry)} ${entry.created_at.getTime()}`
    const known = entries.byIdentity.atTimeOf(entry)
    if (known) nextRepeated.set(instant, known.id)
    const next = nextRepeated.get(instant)
    const id = next === undefined ? newId + index : next - 1 + (index + 1) / (reported.length + 1)
    return { ...entry, id: known?.id ?? id }
  })
  return numbered.reverse()
}

/** Returns undefined for a merge that is to be inserted. */
function applyMerge(entries: KnownEntries, merge: ReportedEntry, same: KnownEntry | undefined): Outcome | undefined {
  const superseded = findSuperseded(entries, merge)
  const becomesMerge = same ?? superseded.shift()
  if (!becomesMerge) return undefined
  for (const entry of superseded) entries.delete(entry)
  const { covers: _, isTimed: __, ...replacement } = merge
  const outcome = entries.replace(becomesMerge, same ? combine(same, merge) : { ...replacement, id: becomesMerge.id })
  return superseded.length > 0 ? 'changed' : outcome
}

/** Finds the entries that the merge replaces. The first one becomes the merge, if the merge is not known yet. */
function findSuperseded(entries: KnownEntries, merge: ReportedEntry): KnownEntry[] {
  const isOfMerge = (entry: KnownEntry) => Number(commitKey(entry.commit_sha) === commitKey(merge.commit_sha))
  const deploys = commitsOf(merge)
    .flatMap((commit) => entries.ofBranch.of(commit))
    // A deploy that a client reported keeps its entry beside the merge.
    .filter((entry) => entry.action === 'deployed' && !entry.by_call)
    // The deploy of the merge commit comes first, then the newest.
    .sort((a, b) => isOfMerge(b) - isOfMerge(a) || Number(b.created_at) - Number(a.created_at) || b.id - a.id)
  const misnumbered = findOtherMerges(entries, merge).filter(
    (entry) => entry.in_git && !entry.on_github && !entry.by_call,
  )
  return merge.on_github ? [...deploys, ...misnumbered] : deploys
}

/** Finds the merges of the same commit into the same branch that have another number. */
const findOtherMerges = (entries: KnownEntries, merge: ReportedEntry): KnownEntry[] =>
  entries.ofBranch.of(merge).filter((entry) => entry.action === 'pr_merged' && entry.pr_number !== merge.pr_number)

/** The commits that get no entry because the merge has one. */
const commitsOf = ({ prompt_id, branch_name, commit_sha: own, covers }: ReportedEntry): CommitOfMerge[] => {
  const merge_sha = commitKey(own)
  const commits = new Set([...covers.map(commitKey), merge_sha])
  return [...commits].map((commit_sha) => ({ prompt_id, branch_name, commit_sha, merge_sha }))
}

/**
 * Combines a known entry with a report of it. Git knows the author of a commit by the mailmap. GitHub knows who merged,
 * when something was pushed or merged, and the title of a pull request. An entry that a client recorded first gets only a
 * title, if it has none.
 */
function combine(known: KnownEntry, reported: ReportedEntry): KnownEntry {
  const whoReported = {
    in_git: known.in_git || reported.in_git,
    on_github: known.on_github || reported.on_github,
    by_call: known.by_call || reported.by_call,
  }
  if (reported.by_call) return { ...known, ...whoReported }
  const title = known.title ?? reported.title
  if (known.as_given) return { ...known, ...whoReported, title }
  const { branch_name, pr_url, created_at, user_name, user_email } = reported
  const isNewOnGithub = reported.on_github && !known.on_github
  const knowsUser = known.action === 'deployed' ? reported.in_git : isNewOnGithub
  return {
    ...known,
    ...(isNewOnGithub && { branch_name, pr_url, created_at }),
    ...(knowsUser && { user_name, user_email }),
    title: (knowsUser && reported.title) || title,
    ...whoReported,
  }
}

const mergedKey = (commit: MergedCommit): string => `${commitId(commit)} ${commit.branch_name}`

const branchKey = ({ prompt_id, branch_name }: MergedCommit): string => `${prompt_id} ${branch_name}`

const reporters = ['in_git', 'on_github', 'by_call'] as const

const isVisibleChange = (from: KnownEntry, to: KnownEntry): boolean =>
  !isDeepStrictEqual(showTitledEntry(from), showTitledEntry(to))

/** The known entries, changed step by step. */
class KnownEntries {
  readonly byId = new Map<number, KnownEntry>()
  readonly byIdentity = new OrderedEntries(identityOf)
  /** Of a commit on a branch. */
  readonly ofBranch = new OrderedEntries(mergedKey)

  constructor(entries: KnownEntry[]) {
    for (const entry of entries.sort(comparePlaces)) this.#add(entry)
  }

  replace(from: KnownEntry, to: KnownEntry): 'changed' | 'known' {
    this.delete(from)
    this.#add(to)
    return isVisibleChange(from, to) ? 'changed' : 'known'
  }

  delete(entry: KnownEntry): void {
    this.byId.delete(entry.id)
    this.byIdentity.delete(entry)
    this.ofBranch.delete(entry)
  }

  #add(entry: KnownEntry): void {
    this.byId.set(entry.id, entry)
    this.byIdentity.add(entry)
    this.ofBranch.add(entry)
  }
}
