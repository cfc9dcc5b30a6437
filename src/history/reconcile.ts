// Decides how the entries of one source change a history. A source is a clone (git), GitHub's events or a client. The
// result does not depend on the order of the reports, nor on repeats; docs/interface.md and docs/git.md have the rules.
import {
  type CommitOfPrompt,
  commitKey,
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
import { type CommitOfBranch, commitOfBranch, isVisibleChange, KnownEntries } from './known_entries.ts'

/** A commit with that of the merge that brought it. The last one that changes the prompt leaves the text of the merge. */
export type MergedCommit = CommitOfBranch & { merge_sha: string; is_last: boolean }

/** What became of an entry. A covered commit has no entry, because it belongs to a merge. */
export type EntryOutcome = 'added' | 'changed' | 'known' | 'covered'

/** With the entry that is stored for it: the known one that it repeats, the new one, or the merge that covers it. */
type Result = { outcome: EntryOutcome; stored?: KnownEntry | undefined }

/** Outcomes and inserts are in the order of the reported entries. */
export type Reconciliation = {
  outcomes: EntryOutcome[]
  /** What is stored for each entry now. */
  stored: (KnownEntry | undefined)[]
  inserts: EntryToRecord[]
  /** Readers do not see every update: who reported an entry is not shown. */
  updates: { from: KnownEntry; to: KnownEntry; isVisible: boolean }[]
  deletes: KnownEntry[]
  mergedCommits: MergedCommit[]
}

export type KnownHistory = {
  /** All entries of the commits that are reported or covered, by any of their spellings, and those of `merged`. */
  entries: KnownEntry[]
  /** The reported commits that belong to a merge. */
  merged: MergedCommit[]
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
  const covered = new Map(known.merged.map((commit) => [commitOfBranch(commit), commit]))
  const mergedCommits = new Map<string, MergedCommit>()
  const results = new Map<ReportedEntry, Result>()
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
    const onGithub = merge.in_git ? findOtherMerges(entries, merge).find((entry) => entry.on_github) : undefined
    if (onGithub) {
      results.set(merge, { outcome: 'covered', stored: giveText(entries, onGithub, merge) })
      continue
    }
    for (const commit of commitsOf(merge)) {
      covered.set(commitOfBranch(commit), commit)
      mergedCommits.set(commitOfBranch(commit), commit)
    }
    const result = applyMerge(entries, merge, findRepeated(merge, entries.byIdentity.of(merge)))
    if (result) results.set(merge, result)
  }
  for (const entry of numbered) {
    if (results.has(entry)) continue
    const coveredBy = entry.action === 'deployed' && !entry.by_call ? covered.get(commitOfBranch(entry)) : undefined
    const repeated = findRepeated(entry, entries.byIdentity.of(entry))
    if (coveredBy) {
      // A rebased pull request has no other commit that leaves its text.
      const merge = coveredBy.is_last ? findMerge(entries, coveredBy) : undefined
      results.set(entry, { outcome: 'covered', stored: merge && giveText(entries, merge, entry) })
    } else if (repeated) results.set(entry, entries.replace(repeated, combine(repeated, entry)))
    else if (findRepeated(entry, inserted.of(entry))) results.set(entry, { outcome: 'known' })
    else if (!entry.by_call && removed.has(identityOf(entry))) results.set(entry, { outcome: 'known' })
    else {
      const { covers: _, isTimed: __, id: ___, ...toInsert } = entry
      results.set(entry, { outcome: 'added', stored: entry })
      inserts.push(toInsert)
      inserted.add(entry)
    }
  }
  return {
    outcomes: numbered.map((entry) => results.get(entry)?.outcome as EntryOutcome),
    stored: numbered.map((entry) => {
      const stored = results.get(entry)?.stored
      // A later entry of the report may have changed it.
      return stored && (entries.byId.get(stored.id) ?? stored)
    }),
    inserts,
    updates: known.entries.flatMap((from) => {
      const to = entries.byId.get(from.id) ?? from
      const isVisible = to !== from && isVisibleChange(from, to)
      const isChanged =
        isVisible || to.text !== undefined || reporters.some((reporter) => from[reporter] !== to[reporter])
      return isChanged ? { from, to, isVisible } : []
    }),
    deletes: known.entries.filter(({ id }) => !entries.byId.has(id)),
    mergedCommits: [...mergedCommits.values()],
  }
}

/**
 * Orders entries of one instant by ids. Known entries keep theirs, new ones sort after them, except before a known entry that
 * follows them in the report: otherwise importing twice would create rollbacks.
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
    return { ...entry, id: known?.id ?? id, is_change: false, has_text: entry.text !== undefined }
  })
  return numbered.reverse()
}

/** Returns undefined for a merge that is to be inserted. */
function applyMerge(entries: KnownEntries, merge: ReportedEntry, same: KnownEntry | undefined): Result | undefined {
  const superseded = findSuperseded(entries, merge)
  const becomesMerge = same ?? superseded.shift()
  if (!becomesMerge) return undefined
  for (const entry of superseded) entries.delete(entry)
  const { covers: _, isTimed: __, ...replacement } = merge
  const { id, is_change, has_text } = withText(becomesMerge, merge.text)
  const { outcome, stored } = entries.replace(
    becomesMerge,
    same ? combine(same, merge) : { ...replacement, id, is_change, has_text },
  )
  return { outcome: superseded.length > 0 ? 'changed' : outcome, stored }
}

const findMerge = (entries: KnownEntries, { merge_sha, ...covered }: MergedCommit): KnownEntry | undefined =>
  entries.ofBranch.of({ ...covered, commit_sha: merge_sha }).find(({ action }) => action === 'pr_merged')

/** Gives the text of a covered commit to its merge. */
const giveText = (entries: KnownEntries, merge: KnownEntry, { text }: ReportedEntry): KnownEntry | undefined =>
  entries.replace(merge, withText(merge, text)).stored

/** A stored text stays. */
const withText = (known: KnownEntry, text: string | undefined): KnownEntry =>
  text === undefined || known.has_text ? known : { ...known, text, has_text: true }

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

/** The commits that get no entry because the merge has one. Its own one comes last if it changes the prompt itself. */
const commitsOf = ({ prompt_id, branch_name, commit_sha: own, covers }: ReportedEntry): MergedCommit[] => {
  const merge_sha = commitKey(own)
  const covered = covers.map(commitKey)
  const commits = [...new Set(covered.includes(merge_sha) ? covered : [merge_sha, ...covered])]
  return commits.map((commit_sha) => {
    return { prompt_id, branch_name, commit_sha, merge_sha, is_last: commit_sha === commits.at(-1) }
  })
}

/**
 * Combines a known entry with a report of it. What GitHub signed is final. Git may correct the author and the title of its
 * own commits, because the mailmap may change. An entry that a client recorded first gets only a title and authors, if it has none.
 */
function combine(stored: KnownEntry, reported: ReportedEntry): KnownEntry {
  const known = withText(stored, reported.text)
  const whoReported = {
    in_git: known.in_git || reported.in_git,
    on_github: known.on_github || reported.on_github,
    by_call: known.by_call || reported.by_call,
  }
  if (reported.by_call) return { ...known, ...whoReported }
  const title = known.title ?? reported.title
  const isNewOnGithub = reported.on_github && !known.on_github
  const isBetter = known.authors.length === 0 || (isNewOnGithub && !known.as_given && reported.authors.length > 0)
  const { authors } = isBetter ? reported : known
  if (known.as_given) return { ...known, ...whoReported, title, authors }
  const { branch_name, pr_url, created_at, user_name, user_email } = reported
  const knowsUser = isNewOnGithub || (known.action === 'deployed' && !known.on_github)
  return {
    ...known,
    ...(isNewOnGithub && { branch_name, pr_url, created_at }),
    ...(knowsUser && { user_name, user_email }),
    title: (knowsUser && reported.title) || title,
    authors,
    ...whoReported,
  }
}

const branchKey = ({ prompt_id, branch_name }: CommitOfBranch): string => `${prompt_id} ${branch_name}`

const reporters = ['in_git', 'on_github', 'by_call'] as const
